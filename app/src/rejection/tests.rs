use super::Rejection::{self, *};
use alloy_primitives::U256;

/// Codes enter LastResultsHash, and texts are what wallets match on: both pinned.
#[test]
fn codes_and_words_are_stable() {
    let table: Vec<(Rejection, u32, &str)> = vec![
        (
            Oversized {
                size_bytes: 2,
                max_bytes: 1,
            },
            1,
            "oversized data: transaction size 2, limit 1",
        ),
        (Undecodable("why"), 2, "rlp: why"),
        (
            UnsupportedType {
                transaction_type: 3,
            },
            3,
            "transaction type not supported",
        ),
        (InvalidSignature, 4, "invalid transaction v, r, s values"),
        (
            NotReplayProtected,
            5,
            "only replay-protected (EIP-155) transactions allowed over RPC",
        ),
        (
            WrongChainId {
                expected: 1,
                got: 2,
            },
            6,
            "invalid chain id for signer: have 2 want 1",
        ),
        (
            TipAboveFeeCap {
                tip_wei: 2,
                fee_cap_wei: 1,
            },
            7,
            "max priority fee per gas higher than max fee per gas",
        ),
        (
            GasLimitAboveTransactionCap {
                cap: 1,
                gas_limit: 2,
            },
            8,
            "transaction gas limit too high (cap: 1, tx: 2)",
        ),
        (
            GasLimitAboveBlock {
                block: 1,
                gas_limit: 2,
            },
            9,
            "exceeds block gas limit",
        ),
        (
            IntrinsicGasTooLow {
                gas_limit: 1,
                needed: 2,
            },
            10,
            "intrinsic gas too low: gas 1, minimum needed 2",
        ),
        (
            FloorDataGasTooLow {
                gas_limit: 1,
                needed: 2,
            },
            11,
            "insufficient gas for floor data gas cost: gas 1, minimum needed 2",
        ),
        (
            InitCodeTooLarge {
                size_bytes: 2,
                max_bytes: 1,
            },
            12,
            "max initcode size exceeded: code size 2 limit 1",
        ),
        (
            EmptyAuthorizationList,
            13,
            "EIP-7702 transaction with empty auth list",
        ),
        (NonceMax, 14, "nonce has max value: 2^64-1"),
        (
            NonceTooLow {
                expected: 2,
                got: 1,
            },
            100,
            "nonce too low: next nonce 2, tx nonce 1",
        ),
        (
            NonceGap {
                expected: 1,
                got: 2,
            },
            101,
            "nonce too high: next nonce 1, tx nonce 2",
        ),
        (
            InsufficientFunds {
                balance: U256::from(1),
                cost: U256::from(2),
            },
            102,
            "insufficient funds for gas * price + value: balance 1, tx cost 2",
        ),
        (
            FeeCapBelowBaseFee {
                fee_cap_wei: 1,
                base_fee_wei: 2,
            },
            103,
            "max fee per gas less than block base fee: maxFeePerGas: 1, baseFee: 2",
        ),
        (SenderHasCode, 104, "sender not an eoa"),
        (
            BlockGasExhausted {
                left: 1,
                gas_limit: 2,
            },
            105,
            "gas limit reached",
        ),
        (
            Evm("why".to_owned()),
            199,
            "transaction refused by the EVM: why",
        ),
        (AlreadyKnown, 200, "already known"),
        (
            ReplacementUnderpriced,
            201,
            "replacement transaction underpriced",
        ),
        (PoolFull, 202, "txpool is full"),
        (
            SenderLimit { limit: 1 },
            203,
            "account limit exceeded: 1 transactions of one sender",
        ),
        (
            DelegatedAccountLimit,
            204,
            "in-flight transaction limit reached for delegated accounts",
        ),
        (NoLongerInPool, 205, "dropped from the pool"),
        (
            DelegatedAccountGap,
            206,
            "gapped-nonce tx from delegated accounts",
        ),
        (AuthorityReserved, 207, "authority already reserved"),
    ];
    for (rejection, code, words) in table {
        assert_eq!(rejection.code(), code, "{rejection:?}");
        assert_eq!(rejection.to_string(), words);
    }
}
