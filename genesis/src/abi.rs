//! Calls, events and errors of the system contracts, for the command line, wallets and tests.

// The macro's items have no docs of their own; the Solidity source documents them.
#![allow(missing_docs)]

use alloy_sol_types::sol;

sol! {
    #[derive(Debug, PartialEq, Eq)]
    contract ValidatorRegistry {
        function proposeAdd(address member, bytes32 publicKey, uint64 power, address payout, bytes calldata signature) external returns (uint256 id);
        function proposeRemove(address member) external returns (uint256 id);
        function proposePower(address member, uint64 power) external returns (uint256 id);
        function proposeRotate(address member, bytes32 publicKey, address payout, bytes calldata signature) external returns (uint256 id);
        function vote(uint256 id) external;
        function setPayout(address payout) external;
        function unjail() external;

        function validators(uint256 index) external view returns (bytes32 publicKey, address member, uint64 power, uint8 status, address payout, uint64 jailedUntil);
        function validatorCount() external view returns (uint256);
        function active(uint256 index) external view returns (bytes32 publicKey, address consensusAddress, uint64 power, uint32 missed);
        function activeCount() external view returns (uint256);
        function indexPlusOne(address member) external view returns (uint256);
        function keys(address consensusAddress) external view returns (address payout, uint8 state);
        function nonces(address member) external view returns (uint64);
        function pending() external view returns (uint256);
        function missedBlocks(address consensusAddress, uint256 word) external view returns (uint256);
        function proposalCount() external view returns (uint256);
        function proposals(uint256 id) external view returns (address member, uint64 power, uint8 action, bool executed, address payout, uint64 expires, bytes32 publicKey, uint64 nonce);
        function voted(uint256 id, address member) external view returns (bool);
        function quorum() external view returns (uint256);
        function votes(uint256 id) external view returns (uint256 count);
        function keyMessage(address member, bytes32 publicKey, address payout) external view returns (bytes memory);
        function consensusAddress(bytes32 publicKey) external pure returns (address);
        function VALIDATORS_MAX() external view returns (uint256);
        function POWER_MIN() external view returns (uint64);
        function TOTAL_POWER_MAX() external view returns (uint64);
        function PROPOSAL_BLOCKS() external view returns (uint64);
        function KEY_DOMAIN() external view returns (bytes32);

        event Proposed(uint256 indexed id, uint8 action, address indexed member, address indexed by);
        event Voted(uint256 indexed id, address indexed by);
        event Executed(uint256 indexed id);
        event PayoutSet(address indexed member, address payout);
        event Unjailed(address indexed member);

        error NotMember(address account);
        error AlreadyMember(address account);
        error ZeroAddress();
        error KeyNotFree(address consensusAddress);
        error BadSignature();
        error StaleNonce(uint64 expected, uint64 got);
        error PowerTooSmall(uint64 power);
        error TotalPowerTooLarge(uint256 total);
        error TooManyValidators();
        error LastValidator();
        error UnknownProposal(uint256 id);
        error AlreadyExecuted(uint256 id);
        error Lapsed(uint256 id);
        error AlreadyVoted(uint256 id, address member);
        error NotJailed();
        error StillJailed(uint64 until);
    }
}
