//! The contract suite of `clients/contracts`: bytecode and bindings.

use alloy_primitives::Bytes;
use alloy_sol_types::{SolValue, sol};

sol! {
    /// See Suite.sol.
    contract Counter {
        function count() external view returns (uint256);
        function increment(uint256 amount) external payable returns (uint256);
        event Incremented(address indexed by, uint256 indexed amount, uint256 count);
    }
    /// See Suite.sol.
    contract Batch {
        struct Call { address to; uint256 value; bytes data; }
        function run(Call[] calls) external payable;
    }
    /// See Suite.sol.
    contract Maker {
        function addressOf(bytes32 salt) external view returns (address);
        function make(bytes32 salt, uint256 value, bool stay) external payable returns (address);
        event Made(address indexed made, bool stays);
    }
    /// See Suite.sol.
    contract Flash {
        function mark() external view returns (uint256);
    }
    /// See Suite.sol.
    contract Caller {
        function answer() external view returns (bytes32);
        function callAndKeep(address target, bytes input) external;
        event Answered(address indexed target, bool ok, bytes result);
    }
}

/// Creation code of a contract of the suite.
pub fn creation_code(name: &str) -> Bytes {
    let suite: serde_json::Value =
        serde_json::from_str(include_str!("../clients/contracts/suite.json"))
            .expect("suite.json is written by compile.mjs");
    suite[name]["bytecode"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("the suite holds every contract named in this crate")
}

/// Creation code of a counter that starts at a value.
pub fn counter_code(start: u64) -> Bytes {
    let mut code = creation_code("Counter").to_vec();
    code.extend(alloy_primitives::U256::from(start).abi_encode());
    code.into()
}
