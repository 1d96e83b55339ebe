// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {Counter} from "../src/Suite.sol";

interface Vm {
    struct EthGetLogs {
        address emitter;
        bytes32[] topics;
        bytes data;
        bytes32 blockHash;
        uint64 blockNumber;
        bytes32 transactionHash;
        uint64 transactionIndex;
        uint256 logIndex;
        bool removed;
    }

    function envAddress(string calldata name) external view returns (address);
    function eth_getLogs(uint256 fromBlock, uint256 toBlock, address target, bytes32[] calldata topics)
        external
        returns (EthGetLogs[] memory logs);
}

/// Run with --fork-url: state and events of the live chain, read by forge.
contract SuiteTest {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function test_state_of_the_chain() external view {
        require(Counter(vm.envAddress("COUNTER")).count() == 22, "count");
    }

    function test_events_of_the_chain() external {
        bytes32[] memory topics = new bytes32[](1);
        topics[0] = Counter.Incremented.selector;
        Vm.EthGetLogs[] memory logs = vm.eth_getLogs(0, block.number, vm.envAddress("COUNTER"), topics);
        require(logs.length == 6, "six events");
        uint256 sum = 7;
        for (uint256 i = 0; i < logs.length; i++) {
            sum += uint256(logs[i].topics[2]);
            require(abi.decode(logs[i].data, (uint256)) == sum, "count in event");
        }
    }
}
