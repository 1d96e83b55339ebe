// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {Batch, Counter} from "../src/Suite.sol";

/// The cheat codes used here.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
    function envAddress(string calldata name) external view returns (address);
    function signAndAttachDelegation(address implementation, uint256 privateKey) external;
    function envUint(string calldata name) external view returns (uint256);
    function addr(uint256 privateKey) external view returns (address);
}

abstract contract Script {
    bool public constant IS_SCRIPT = true;
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
}

contract Increment is Script {
    function run() external {
        Counter counter = Counter(vm.envAddress("COUNTER"));
        vm.startBroadcast();
        counter.increment(1);
        counter.increment(2);
        vm.stopBroadcast();
    }
}

contract Delegate is Script {
    function run() external {
        Counter counter = Counter(vm.envAddress("COUNTER"));
        uint256 key = vm.envUint("SENDER_KEY");
        Batch.Call[] memory calls = new Batch.Call[](2);
        calls[0] = Batch.Call(address(counter), 0, abi.encodeCall(counter.increment, (4)));
        calls[1] = Batch.Call(address(counter), 0, abi.encodeCall(counter.increment, (5)));
        vm.startBroadcast();
        vm.signAndAttachDelegation(vm.envAddress("BATCH"), key);
        Batch(payable(vm.addr(key))).run(calls);
        vm.stopBroadcast();
    }
}

contract Undelegate is Script {
    function run() external {
        uint256 key = vm.envUint("SENDER_KEY");
        vm.startBroadcast();
        vm.signAndAttachDelegation(address(0), key);
        payable(vm.addr(key)).transfer(0);
        vm.stopBroadcast();
    }
}
