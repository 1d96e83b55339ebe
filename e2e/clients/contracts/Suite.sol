// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

/// A counter with what client suites need: state, an event with indexed fields, a revert with a reason and one with a
/// custom error, a payable function and a map.
contract Counter {
    uint256 public count;
    mapping(address => uint256) public countOf;

    event Incremented(address indexed by, uint256 indexed amount, uint256 count);

    error TooLarge(uint256 amount, uint256 max);

    constructor(uint256 start) {
        count = start;
    }

    function increment(uint256 amount) external payable returns (uint256) {
        if (amount > 100) revert TooLarge(amount, 100);
        require(amount != 0, "amount is zero");
        count += amount;
        countOf[msg.sender] += amount;
        emit Incremented(msg.sender, amount, count);
        return count;
    }
}

/// What an account delegates to under EIP-7702: several calls in one transaction, only for the account itself.
contract Batch {
    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    error NotSelf();

    function run(Call[] calldata calls) external payable {
        if (msg.sender != address(this)) revert NotSelf();
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory result) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (!ok) {
                assembly ("memory-safe") {
                    revert(add(result, 32), mload(result))
                }
            }
        }
    }

    receive() external payable {}
}

/// Makes `Flash` at an address that depends on the salt alone: its constructor reads what it needs from here.
contract Maker {
    event Made(address indexed made, bool stays);

    function initCode() public pure returns (bytes memory) {
        return type(Flash).creationCode;
    }

    uint256 public value;
    bool public stay;

    function addressOf(bytes32 salt) external view returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, keccak256(initCode()))))));
    }

    function make(bytes32 salt, uint256 value_, bool stay_) external payable returns (address made) {
        value = value_;
        stay = stay_;
        made = address(new Flash{salt: salt, value: msg.value}());
        emit Made(made, stay_);
    }
}

/// Asks its maker what to store and whether to stay. Not staying, it destroys itself in the transaction that made it: the
/// account is gone afterwards and its address is free again.
contract Flash {
    uint256 public mark;

    constructor() payable {
        Maker maker = Maker(msg.sender);
        mark = maker.value();
        if (!maker.stay()) selfdestruct(payable(msg.sender));
    }
}

/// Calls a precompile and keeps the answer: a proof verified inside a transaction.
contract Caller {
    bytes32 public answer;

    event Answered(address indexed target, bool ok, bytes result);

    function callAndKeep(address target, bytes calldata input) external {
        (bool ok, bytes memory result) = target.staticcall(input);
        answer = result.length >= 32 ? bytes32(result) : bytes32(0);
        emit Answered(target, ok, result);
    }
}
