//! The contract itself, through blocks: votes, rules, signatures, and what the end of the block makes of them.

use super::*;
use crate::{
    simulation::{self, CallRequest, Ending, Limits, Overrides, Scene},
    testing::{FEE_CAP_WEI, TestChain, TestKey},
};
use alloy_consensus::TxEip1559;
use alloy_primitives::{B256, Bytes, TxKind};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue};
use cloister_genesis::{Genesis, abi::ValidatorRegistry as Abi};

const REGISTRY: Address = VALIDATOR_REGISTRY_ADDRESS;

/// A chain whose member number `n` is `TestKey::new(n)` with consensus key `n`.
struct Consortium {
    chain: TestChain,
    nonces: BTreeMap<u64, u64>,
}

fn member(n: u8) -> Address {
    TestKey::new(n.into()).address()
}

fn genesis(members: u8, change: impl FnOnce(&mut Parameters)) -> Genesis {
    let validators = (1..=members).map(|n| GenesisValidator {
        member: member(n),
        ..genesis_validator(n, 100)
    });
    let builder = GenesisBuilder::new(7)
        .parameters(change)
        .validators(validators);
    (1..=12)
        .fold(builder, |builder, n| {
            builder.fund(member(n), U256::from(10).pow(U256::from(20)))
        })
        .build()
        .expect("sound")
}

impl Consortium {
    fn new(members: u8) -> Self {
        Self::with(members, |_| {})
    }

    fn with(members: u8, change: impl FnOnce(&mut Parameters)) -> Self {
        Self {
            chain: TestChain::from_genesis(&genesis(members, change)),
            nonces: BTreeMap::new(),
        }
    }

    fn transaction(&mut self, from: u8, call: &impl SolCall) -> Bytes {
        let nonce = self.nonces.entry(from.into()).or_default();
        let transaction = TxEip1559 {
            chain_id: self.chain.app.parameters().chain_id,
            nonce: *nonce,
            gas_limit: 2_000_000,
            max_fee_per_gas: FEE_CAP_WEI,
            max_priority_fee_per_gas: 0,
            to: TxKind::Call(REGISTRY),
            value: U256::ZERO,
            access_list: Default::default(),
            input: call.abi_encode().into(),
        };
        *nonce += 1;
        TestKey::new(from.into()).sign(transaction)
    }

    /// One block with this call; whether it succeeded, and the updates.
    fn send(&mut self, from: u8, call: &impl SolCall) -> (bool, Vec<ValidatorUpdate>) {
        let transaction = self.transaction(from, call);
        let outcome = self.chain.run(vec![transaction]);
        let receipt = &outcome.block.transactions[0].receipt;
        (receipt.status(), outcome.block.validator_updates)
    }

    #[track_caller]
    fn succeeds(&mut self, from: u8, call: &impl SolCall) -> Vec<ValidatorUpdate> {
        let (success, updates) = self.send(from, call);
        assert!(success, "refused: {:?}", self.call(from, call));
        updates
    }

    /// The call reverts with this error, and sent in a block it changes nothing of the registry.
    #[track_caller]
    fn refuses(&mut self, from: u8, call: &impl SolCall, error: impl SolError) {
        let want = Bytes::from(error.abi_encode());
        assert_eq!(self.call(from, call), Ending::Revert { output: want });
        let before = self.chain.account(REGISTRY).storage_root;
        assert_eq!(self.send(from, call), (false, Vec::new()));
        assert_eq!(self.chain.account(REGISTRY).storage_root, before);
    }

    fn call(&self, from: u8, call: &impl SolCall) -> Ending {
        let request = CallRequest {
            from: member(from),
            to: Some(REGISTRY),
            input: call.abi_encode().into(),
            ..CallRequest::default()
        };
        let scene = Scene {
            app: &self.chain.app,
            state: &self.chain.state,
            header: &self.chain.head,
            overrides: &Overrides::default(),
            limits: Limits {
                gas_max: 50_000_000,
                stop: &|| false,
            },
        };
        simulation::call(&scene, &request)
            .expect("the call can be made")
            .ending
    }

    #[track_caller]
    fn view<C: SolCall>(&self, call: &C) -> C::Return {
        match self.call(1, call) {
            Ending::Success { output } => C::abi_decode_returns(&output).expect("as the ABI says"),
            other => panic!("no answer: {other:?}"),
        }
    }

    /// All others vote for the proposal until it is adopted; gives the updates of that block.
    #[track_caller]
    fn adopt(&mut self, id: u64) -> Vec<ValidatorUpdate> {
        for n in 2..=12 {
            let proposal = self.view(&Abi::proposalsCall { id: U256::from(id) });
            assert!(!proposal.executed);
            let updates = self.succeeds(n, &vote(id));
            if self
                .view(&Abi::proposalsCall { id: U256::from(id) })
                .executed
            {
                return updates;
            }
            assert_eq!(updates, []);
        }
        panic!("never adopted");
    }

    fn read(&self) -> impl FnMut(U256) -> Result<U256, StateError> + '_ {
        |slot| {
            self.chain
                .state
                .storage(HashedAddress::from(REGISTRY), HashedSlot::from(slot))
        }
    }

    fn wanted(&self) -> Vec<Validator> {
        validators(&mut self.read()).expect("in memory")
    }

    fn add(&self, n: u8, power: u64) -> Abi::proposeAddCall {
        Abi::proposeAddCall {
            member: member(n),
            publicKey: public_key(n).into(),
            power,
            payout: Address::repeat_byte(n),
            signature: self.signature(n, n, Address::repeat_byte(n)),
        }
    }

    /// By consensus key `key`, for member `n`, over what the contract asks for now.
    fn signature(&self, n: u8, key: u8, payout: Address) -> Bytes {
        let nonce = self.view(&Abi::noncesCall { member: member(n) });
        let chain_id = self.chain.app.parameters().chain_id;
        sign(
            key,
            &message(chain_id, member(n), public_key(key), payout, nonce),
        )
    }

    fn rotate(&self, n: u8, key: u8) -> Abi::proposeRotateCall {
        let payout = Address::repeat_byte(n);
        Abi::proposeRotateCall {
            member: member(n),
            publicKey: public_key(key).into(),
            payout,
            signature: self.signature(n, key, payout),
        }
    }
}

fn vote(id: u64) -> Abi::voteCall {
    Abi::voteCall { id: U256::from(id) }
}

fn remove(n: u8) -> Abi::proposeRemoveCall {
    Abi::proposeRemoveCall { member: member(n) }
}

/// What a key signs, put together without the contract.
fn message(chain_id: u64, member: Address, key: [u8; 32], payout: Address, nonce: u64) -> Vec<u8> {
    let domain = alloy_primitives::keccak256("cloister/ValidatorRegistry/key/1");
    (
        domain,
        U256::from(chain_id),
        REGISTRY,
        member,
        B256::from(key),
        payout,
        nonce,
    )
        .abi_encode()
}

fn sign(key: u8, message: &[u8]) -> Bytes {
    Bytes::from(signing_key(key).sign(message).to_bytes())
}

fn update(n: u8, power: u64) -> ValidatorUpdate {
    ValidatorUpdate {
        public_key: public_key(n),
        power,
    }
}

#[test]
fn views_tell_what_genesis_wrote() {
    let consortium = Consortium::new(4);
    assert_eq!(consortium.view(&Abi::validatorCountCall {}), U256::from(4));
    assert_eq!(consortium.view(&Abi::activeCountCall {}), U256::from(4));
    for n in 1..=4 {
        let index = U256::from(n - 1);
        let validator = consortium.view(&Abi::validatorsCall { index });
        assert_eq!(validator.publicKey.0, public_key(n));
        assert_eq!(validator.member, member(n));
        assert_eq!((validator.power, validator.status), (100, 0));
        assert_eq!(validator.payout, Address::repeat_byte(n + 100));
        let place = consortium.view(&Abi::indexPlusOneCall { member: member(n) });
        assert_eq!(place, U256::from(n));
        let consensus_address = consensus_address(&public_key(n));
        let computed = Abi::consensusAddressCall {
            publicKey: public_key(n).into(),
        };
        assert_eq!(consortium.view(&computed), consensus_address);
        let key = consortium.view(&Abi::keysCall {
            consensusAddress: consensus_address,
        });
        assert_eq!((key.payout, key.state), (Address::repeat_byte(n + 100), 1));
    }
    let first = consortium.view(&Abi::activeCall { index: U256::ZERO });
    let least = (1..=4).map(public_key).min().expect("four");
    assert_eq!(first.publicKey.0, least);
    assert_eq!((first.power, first.missed), (100, 0));
    assert_eq!(first.consensusAddress, consensus_address(&least));
    assert_eq!(consortium.view(&Abi::pendingCall {}), U256::ZERO);
}

#[test]
fn limits_are_those_of_genesis() {
    let consortium = Consortium::new(1);
    let count = U256::from(cloister_genesis::VALIDATORS_MAX);
    assert_eq!(consortium.view(&Abi::VALIDATORS_MAXCall {}), count);
    let least = cloister_genesis::VALIDATOR_POWER_MIN;
    assert_eq!(consortium.view(&Abi::POWER_MINCall {}), least);
    let most = cloister_genesis::TOTAL_POWER_MAX;
    assert_eq!(consortium.view(&Abi::TOTAL_POWER_MAXCall {}), most);
}

#[test]
fn the_abi_is_that_of_the_artifact() {
    let artifact: serde_json::Value =
        serde_json::from_str(cloister_genesis::contracts::VALIDATOR_REGISTRY_ARTIFACT)
            .expect("JSON");
    let signatures = |kind: &str| -> BTreeSet<String> {
        let items = artifact["abi"].as_array().expect("a list").iter();
        items
            .filter(|item| item["type"] == kind)
            .map(|item| {
                let inputs = item["inputs"].as_array().expect("a list").iter();
                let types: Vec<&str> = inputs
                    .map(|input| input["type"].as_str().expect("text"))
                    .collect();
                format!(
                    "{}({})",
                    item["name"].as_str().expect("text"),
                    types.join(",")
                )
            })
            .collect()
    };
    let selectors = |kind| -> BTreeSet<[u8; 4]> {
        let hash = |signature: &String| alloy_primitives::keccak256(signature);
        signatures(kind)
            .iter()
            .map(|signature| hash(signature)[..4].try_into().expect("four bytes"))
            .collect()
    };
    use alloy_sol_types::{SolEventInterface as _, SolInterface as _};
    assert_eq!(
        selectors("function"),
        Abi::ValidatorRegistryCalls::selectors().collect()
    );
    assert_eq!(
        selectors("error"),
        Abi::ValidatorRegistryErrors::selectors().collect()
    );
    assert_eq!(
        Abi::ValidatorRegistryEvents::COUNT,
        signatures("event").len()
    );
}

#[test]
fn more_than_two_thirds_adopt() {
    for (members, quorum) in [
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 3),
        (5, 4),
        (6, 5),
        (7, 5),
        (9, 7),
        (10, 7),
    ] {
        let consortium = Consortium::new(members);
        assert_eq!(
            consortium.view(&Abi::quorumCall {}),
            U256::from(quorum),
            "{members}"
        );
    }
}

#[test]
fn members_add_a_validator() {
    let mut consortium = Consortium::new(4);
    let add = consortium.add(5, 50);
    assert_eq!(consortium.succeeds(1, &add), []);
    assert_eq!(consortium.succeeds(2, &vote(1)), []);
    assert_eq!(consortium.wanted().len(), 4);
    assert_eq!(consortium.succeeds(3, &vote(1)), [update(5, 50)]);
    let joined = consortium.wanted()[4];
    assert_eq!((joined.member, joined.power), (member(5), 50));
    assert_eq!(consortium.view(&Abi::pendingCall {}), U256::ZERO);
    assert_eq!(consortium.view(&Abi::noncesCall { member: member(5) }), 1);
    let payout = payout_address(&consortium.chain.state, consensus(5)).expect("in memory");
    assert_eq!(payout, Address::repeat_byte(5));
    // It votes now: four of five are needed.
    let id = U256::from(2);
    consortium.succeeds(5, &remove(1));
    assert_eq!(consortium.view(&Abi::votesCall { id }), U256::from(1));
    assert_eq!(consortium.view(&Abi::quorumCall {}), U256::from(4));
}

#[test]
fn events_tell_of_each_step() {
    let mut consortium = Consortium::new(1);
    let call = consortium.add(2, 10);
    let transaction = consortium.transaction(1, &call);
    let outcome = consortium.chain.run(vec![transaction]);
    let logs = outcome.block.transactions[0].receipt.logs().to_vec();
    let id = U256::from(1);
    let proposed = Abi::Proposed {
        id,
        action: 0,
        member: member(2),
        by: member(1),
    };
    assert_eq!(logs[0].data, proposed.encode_log_data());
    assert_eq!(
        logs[1].data,
        Abi::Voted { id, by: member(1) }.encode_log_data()
    );
    assert_eq!(logs[2].data, Abi::Executed { id }.encode_log_data());
    assert!(logs.iter().all(|log| log.address == REGISTRY));
}

#[test]
fn a_lone_member_grows_the_set_in_steps() {
    let mut consortium = Consortium::new(1);
    let add = consortium.add(2, 100);
    assert_eq!(consortium.succeeds(1, &add), [update(2, 33)]);
    let next =
        |consortium: &mut Consortium| consortium.chain.run(Vec::new()).block.validator_updates;
    assert_eq!(next(&mut consortium), [update(2, 77)]);
    assert_eq!(next(&mut consortium), [update(2, 100)]);
    assert_eq!(next(&mut consortium), []);
}

#[test]
fn members_remove_a_validator() {
    let mut consortium = Consortium::new(4);
    consortium.succeeds(1, &remove(2));
    let votes_before = consortium.view(&Abi::votesCall { id: U256::from(1) });
    assert_eq!(votes_before, U256::from(1));
    consortium.succeeds(3, &vote(1));
    assert_eq!(consortium.succeeds(4, &vote(1)), [update(2, 0)]);
    // The last took the place of the one that left.
    let members: Vec<Address> = consortium.wanted().iter().map(|v| v.member).collect();
    assert_eq!(members, [member(1), member(4), member(3)]);
    let place = Abi::indexPlusOneCall { member: member(4) };
    assert_eq!(consortium.view(&place), U256::from(2));
    let account = member(2);
    consortium.refuses(2, &remove(1), Abi::NotMember { account });
    consortium.succeeds(
        4,
        &Abi::setPayoutCall {
            payout: Address::repeat_byte(9),
        },
    );
    let payout = payout_address(&consortium.chain.state, consensus(4)).expect("in memory");
    assert_eq!(payout, Address::repeat_byte(9));
}

#[test]
fn members_change_a_power() {
    let mut consortium = Consortium::new(4);
    let call = Abi::proposePowerCall {
        member: member(3),
        power: 140,
    };
    consortium.succeeds(1, &call);
    assert_eq!(consortium.adopt(1), [update(3, 140)]);
}

#[test]
fn members_rotate_a_key() {
    let mut consortium = Consortium::new(4);
    let rotate = consortium.rotate(3, 30);
    consortium.succeeds(1, &rotate);
    let first = consortium.adopt(1);
    // A quarter in and a quarter out is more than a third: two blocks.
    let second = consortium.chain.run(Vec::new()).block.validator_updates;
    let all: BTreeSet<_> = first
        .iter()
        .chain(&second)
        .map(|u| (u.public_key, u.power))
        .collect();
    assert!(all.contains(&(public_key(30), 100)) && all.contains(&(public_key(3), 0)));
    assert_eq!(consortium.wanted()[2].public_key, public_key(30));
    // The fees of the old key's last blocks still go where they went.
    let payout = |n| payout_address(&consortium.chain.state, consensus(n)).expect("in memory");
    assert_eq!(payout(3), Address::repeat_byte(103));
    assert_eq!(payout(30), Address::repeat_byte(3));
}

#[test]
fn fees_go_to_the_payout_address_from_the_next_block_on() {
    let mut consortium = Consortium::new(4);
    let call = Abi::setPayoutCall {
        payout: Address::repeat_byte(0xaa),
    };
    let transaction = consortium.transaction(2, &call);
    let beneficiary = |consortium: &mut Consortium, transactions| {
        let mut input = consortium.chain.input(transactions);
        input.proposer = consensus(2);
        let (app, state, head) = (
            &consortium.chain.app,
            &consortium.chain.state,
            &consortium.chain.head,
        );
        let executed = app
            .execute_block(state, head, &input, &|_| None)
            .expect("executes");
        consortium.chain.apply(executed).block.header.beneficiary
    };
    let before = beneficiary(&mut consortium, vec![transaction]);
    assert_eq!(
        before,
        Address::repeat_byte(102),
        "as the parent block left it"
    );
    assert_eq!(
        beneficiary(&mut consortium, Vec::new()),
        Address::repeat_byte(0xaa)
    );
    // An unknown proposer has none.
    let outcome = consortium.chain.run(Vec::new());
    assert_eq!(outcome.block.header.beneficiary, Address::ZERO);
}

#[test]
fn refuses_who_is_no_member() {
    let mut consortium = Consortium::new(4);
    let account = member(9);
    let stranger = || Abi::NotMember { account };
    let add = consortium.add(9, 10);
    consortium.refuses(9, &add, stranger());
    consortium.refuses(9, &remove(1), stranger());
    consortium.refuses(9, &Abi::unjailCall {}, stranger());
    consortium.refuses(9, &Abi::setPayoutCall { payout: account }, stranger());
    consortium.succeeds(1, &remove(2));
    consortium.refuses(9, &vote(1), stranger());
    // Nor can one who is none be removed.
    consortium.refuses(1, &remove(9), stranger());
}

#[test]
fn refuses_bad_signatures() {
    let mut consortium = Consortium::new(4);
    let add = consortium.add(5, 10);
    let (key, payout) = (public_key(5), Address::repeat_byte(5));
    for signed in [
        message(8, member(5), key, payout, 0),
        message(7, member(6), key, payout, 0),
        message(7, member(5), public_key(6), payout, 0),
        message(7, member(5), key, Address::repeat_byte(6), 0),
        message(7, member(5), key, payout, 1),
        Vec::new(),
    ] {
        let bad = Abi::proposeAddCall {
            signature: sign(5, &signed),
            ..add.clone()
        };
        consortium.refuses(1, &bad, Abi::BadSignature {});
    }
    let other_key = sign(6, &message(7, member(5), key, payout, 0));
    let flipped = |at: usize| {
        let mut bytes = add.signature.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    let short = add.signature.slice(..63);
    let long = Bytes::from([&add.signature[..], &[0]].concat());
    for signature in [
        other_key,
        flipped(0),
        flipped(32),
        flipped(63),
        short,
        long,
        Bytes::new(),
    ] {
        let bad = Abi::proposeAddCall {
            signature,
            ..add.clone()
        };
        consortium.refuses(1, &bad, Abi::BadSignature {});
    }
    consortium.succeeds(1, &add);
}

#[test]
fn refuses_a_key_of_small_order_whatever_is_signed() {
    let mut consortium = Consortium::new(4);
    // The identity as key: R = identity, s = 0 satisfies the equation for every message.
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut signature = [0; 64];
    signature[0] = 1;
    let add = Abi::proposeAddCall {
        publicKey: identity.into(),
        signature: Bytes::copy_from_slice(&signature),
        ..consortium.add(5, 10)
    };
    consortium.refuses(1, &add, Abi::BadSignature {});
}

#[test]
fn refuses_a_replayed_signature() {
    let mut consortium = Consortium::new(4);
    let add = consortium.add(5, 10);
    consortium.succeeds(1, &add);
    consortium.adopt(1);
    consortium.succeeds(1, &remove(5));
    consortium.adopt(2);
    consortium.refuses(1, &add, Abi::BadSignature {});
    // Signed anew it holds: the key was released.
    let anew = consortium.add(5, 10);
    consortium.succeeds(1, &anew);
    assert_eq!(consortium.adopt(3), [update(5, 10)]);
}

#[test]
fn refuses_a_nonce_overtaken_by_another_proposal() {
    let mut consortium = Consortium::new(4);
    let (first, second) = (consortium.rotate(3, 30), consortium.rotate(3, 31));
    consortium.succeeds(1, &first);
    consortium.succeeds(1, &second);
    consortium.adopt(1);
    consortium.succeeds(2, &vote(2));
    let stale = Abi::StaleNonce {
        expected: 1,
        got: 0,
    };
    consortium.refuses(3, &vote(2), stale);
}

#[test]
fn refuses_a_key_in_use_or_barred() {
    let mut consortium = Consortium::new(4);
    let payout = Address::repeat_byte(5);
    let with_key = |consortium: &Consortium, key| Abi::proposeAddCall {
        publicKey: public_key(key).into(),
        signature: consortium.signature(5, key, payout),
        ..consortium.add(5, 10)
    };
    let taken = |n| Abi::KeyNotFree {
        consensusAddress: consensus_address(&public_key(n)),
    };
    let add = with_key(&consortium, 3);
    consortium.refuses(1, &add, taken(3));

    let mut input = consortium.chain.input(Vec::new());
    input.misbehaviour = vec![Misbehaviour {
        duplicate_vote: true,
        validator: consensus(4),
        height: 0,
    }];
    let (app, state, head) = (
        &consortium.chain.app,
        &consortium.chain.state,
        &consortium.chain.head,
    );
    let executed = app
        .execute_block(state, head, &input, &|_| None)
        .expect("executes");
    assert_eq!(executed.validator_updates, [update(4, 0)]);
    consortium.chain.apply(executed);
    let add = with_key(&consortium, 4);
    consortium.refuses(1, &add, taken(4));
    let rotate = consortium.rotate(4, 4);
    consortium.refuses(1, &rotate, taken(4));
    // Removed and added again, the key is barred still.
    consortium.succeeds(1, &remove(4));
    consortium.adopt(1);
    consortium.refuses(1, &add, taken(4));
}

#[test]
fn a_barred_member_votes_and_comes_back_with_another_key() {
    let mut consortium = Consortium::new(4);
    let mut input = consortium.chain.input(Vec::new());
    input.misbehaviour = vec![Misbehaviour {
        duplicate_vote: true,
        validator: consensus(4),
        height: 0,
    }];
    let (app, state, head) = (
        &consortium.chain.app,
        &consortium.chain.state,
        &consortium.chain.head,
    );
    let executed = app
        .execute_block(state, head, &input, &|_| None)
        .expect("executes");
    consortium.chain.apply(executed);
    consortium.refuses(4, &Abi::unjailCall {}, Abi::NotJailed {});
    let rotate = consortium.rotate(4, 40);
    consortium.succeeds(4, &rotate);
    consortium.adopt(1);
    assert_eq!(consortium.wanted()[3].status, Status::Active);
    consortium.chain.run(Vec::new());
    let active = active_validators(&mut consortium.read()).expect("in memory");
    let back = active
        .iter()
        .find(|v| v.public_key == public_key(40))
        .expect("in the set");
    assert_eq!(back.power, 100);
}

#[test]
fn refuses_the_last_validators_removal() {
    let mut consortium = Consortium::new(1);
    consortium.refuses(1, &remove(1), Abi::LastValidator {});
}

#[test]
fn refuses_what_does_not_fit() {
    let mut consortium = Consortium::new(4);
    let add = consortium.add(5, 3);
    consortium.refuses(1, &add, Abi::PowerTooSmall { power: 3 });
    let most = cloister_genesis::TOTAL_POWER_MAX;
    let add = consortium.add(5, most - 399);
    let total = U256::from(most) + U256::from(1);
    consortium.refuses(1, &add, Abi::TotalPowerTooLarge { total });
    let power = Abi::proposePowerCall {
        member: member(1),
        power: u64::MAX,
    };
    let total = U256::from(u64::MAX) + U256::from(300);
    consortium.refuses(1, &power, Abi::TotalPowerTooLarge { total });
    let add = Abi::proposeAddCall {
        member: member(2),
        ..consortium.add(5, 10)
    };
    let add = Abi::proposeAddCall {
        signature: consortium.signature(2, 5, add.payout),
        ..add
    };
    consortium.refuses(1, &add, Abi::AlreadyMember { account: member(2) });
    let add = Abi::proposeAddCall {
        member: Address::ZERO,
        ..consortium.add(5, 10)
    };
    consortium.refuses(1, &add, Abi::ZeroAddress {});
}

#[test]
fn refuses_votes_that_do_not_count() {
    let mut consortium = Consortium::new(4);
    let id = U256::from(1);
    for unknown in [0, 1, 2] {
        let error = Abi::UnknownProposal {
            id: U256::from(unknown),
        };
        consortium.refuses(1, &vote(unknown), error);
    }
    consortium.succeeds(1, &remove(4));
    consortium.refuses(
        1,
        &vote(1),
        Abi::AlreadyVoted {
            id,
            member: member(1),
        },
    );
    consortium.succeeds(2, &vote(1));
    consortium.succeeds(3, &vote(1));
    consortium.refuses(2, &vote(1), Abi::AlreadyExecuted { id });
}

#[test]
fn votes_of_those_who_left_do_not_count() {
    let mut consortium = Consortium::new(5);
    let power = Abi::proposePowerCall {
        member: member(1),
        power: 7,
    };
    consortium.succeeds(5, &power);
    consortium.succeeds(4, &vote(1));
    consortium.succeeds(1, &remove(5));
    consortium.adopt(2);
    let id = U256::from(1);
    assert_eq!(
        consortium.view(&Abi::votesCall { id }),
        U256::from(1),
        "only the vote of 4"
    );
    consortium.succeeds(1, &vote(1));
    assert_eq!(consortium.wanted()[0].power, 100);
    consortium.succeeds(2, &vote(1));
    assert_eq!(consortium.wanted()[0].power, 7);
}

#[test]
fn a_proposal_lapses() {
    let mut consortium = Consortium::new(4);
    consortium.succeeds(1, &remove(4));
    let expires = consortium
        .view(&Abi::proposalsCall { id: U256::from(1) })
        .expires;
    let lifetime = consortium.view(&Abi::PROPOSAL_BLOCKSCall {});
    assert_eq!(expires, consortium.chain.head.number + lifetime);
    consortium.chain.head.number = expires - 1;
    consortium.succeeds(2, &vote(1));
    consortium.chain.run(Vec::new());
    consortium.refuses(3, &vote(1), Abi::Lapsed { id: U256::from(1) });
}

#[test]
fn unjails_only_after_the_term() {
    let mut consortium = Consortium::with(4, |parameters| {
        parameters.downtime_window_blocks = 4;
        parameters.jail_blocks = 5;
    });
    let absent = |consortium: &mut Consortium| {
        let mut input = consortium.chain.input(Vec::new());
        input.last_commit = (1..=4)
            .map(|n| Vote {
                validator: consensus(n),
                power: 100,
                signed: n != 2,
            })
            .collect();
        let (app, state, head) = (
            &consortium.chain.app,
            &consortium.chain.state,
            &consortium.chain.head,
        );
        let executed = app
            .execute_block(state, head, &input, &|_| None)
            .expect("executes");
        consortium.chain.apply(executed).block.validator_updates
    };
    consortium.refuses(2, &Abi::unjailCall {}, Abi::NotJailed {});
    assert_eq!(absent(&mut consortium), []);
    assert_eq!(absent(&mut consortium), []);
    assert_eq!(absent(&mut consortium), [update(2, 0)]);
    let until = consortium.wanted()[1].jailed_until;
    assert_eq!(until, consortium.chain.head.number + 5);
    while consortium.chain.head.number + 1 < until {
        // The block that the call would be in is below the term.
        let (success, updates) = consortium.send(2, &Abi::unjailCall {});
        assert!(!success && updates.is_empty());
    }
    assert_eq!(consortium.succeeds(2, &Abi::unjailCall {}), [update(2, 99)]);
    assert_eq!(consortium.chain.head.number, until);
    let next = consortium.chain.run(Vec::new());
    assert_eq!(next.block.validator_updates, [update(2, 100)]);
}

#[test]
fn the_key_message_is_what_the_document_says() {
    let consortium = Consortium::new(1);
    let call = Abi::keyMessageCall {
        member: member(5),
        publicKey: public_key(5).into(),
        payout: Address::repeat_byte(5),
    };
    let expected = message(7, member(5), public_key(5), Address::repeat_byte(5), 0);
    assert_eq!(consortium.view(&call), Bytes::from(expected));
}
