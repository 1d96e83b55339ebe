//! Random histories: whatever members do and validators suffer, CometBFT takes every update, no step reaches a third,
//! the set is never empty, and in the end it is the set wanted.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Operation {
    Add(u8, u64),
    Remove(u8),
    Power(u8, u64),
    Rotate(u8, u8),
    Unjail(u8),
    Blocks(u8, Vec<u8>),
    SignTwice(u8),
}

fn operation() -> impl Strategy<Value = Operation> {
    let n = 1_u8..24;
    let power = prop_oneof![
        4_u64..40,
        Just(100),
        4_u64..1_000_000,
        Just(cloister_genesis::TOTAL_POWER_MAX / 8),
    ];
    prop_oneof![
        3 => (n.clone(), power.clone()).prop_map(|(n, power)| Operation::Add(n, power)),
        2 => n.clone().prop_map(Operation::Remove),
        2 => (n.clone(), power).prop_map(|(n, power)| Operation::Power(n, power)),
        2 => (n.clone(), n.clone()).prop_map(|(n, new)| Operation::Rotate(n, new)),
        2 => n.clone().prop_map(Operation::Unjail),
        6 => (1_u8..12, prop::collection::vec(n.clone(), 0..4))
            .prop_map(|(count, absent)| Operation::Blocks(count, absent)),
        1 => n.prop_map(Operation::SignTwice),
    ]
}

/// Carries out an operation if the contract would.
fn perform(network: &mut Network, operation: &Operation) {
    let wanted = network.wanted();
    let place = |n: u8| {
        wanted
            .iter()
            .position(|validator| validator.public_key == public_key(n))
    };
    let free = |network: &Network, n| {
        matches!(network.key_state(n), KeyState::Unknown | KeyState::Released)
    };
    let fits = |without: Option<usize>, power: u64| {
        let others = wanted
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != without);
        let total: u64 = others.map(|(_, validator)| validator.power).sum();
        total + power <= cloister_genesis::TOTAL_POWER_MAX
    };
    match operation {
        Operation::Add(n, power) => {
            let member = Address::repeat_byte(*n);
            let new_member = wanted.iter().all(|validator| validator.member != member);
            if new_member && free(network, *n) && fits(None, *power) {
                network.add(*n, *power);
            }
        }
        Operation::Remove(n) => {
            let another = wanted.iter().any(|validator| {
                validator.public_key != public_key(*n) && validator.status == Status::Active
            });
            if place(*n).is_some() && another {
                network.remove(*n);
            }
        }
        Operation::Power(n, power) => {
            if place(*n).is_some() && fits(place(*n), *power) {
                network.change(*n, |validator| validator.power = *power);
            }
        }
        Operation::Rotate(n, new) => {
            if place(*n).is_some() && free(network, *new) {
                network.change(*n, |validator| {
                    validator.public_key = public_key(*new);
                    if validator.status == Status::Barred {
                        validator.status = Status::Active;
                    }
                });
            }
        }
        Operation::Unjail(n) => {
            let next = network.height + 1;
            let due = place(*n).is_some_and(|index| {
                wanted[index].status == Status::Jailed && wanted[index].jailed_until <= next
            });
            if due {
                network.change(*n, |validator| validator.status = Status::Active);
            }
        }
        Operation::Blocks(count, absent) => {
            for _ in 0..*count {
                block(network, absent, &[]);
            }
        }
        Operation::SignTwice(n) => block(network, &[], &[*n]),
    }
}

fn block(network: &mut Network, absent: &[u8], signed_twice: &[u8]) {
    let before = network.wanted();
    let barred: Vec<u8> = (1..24)
        .filter(|n| network.key_state(*n) == KeyState::Barred)
        .collect();
    let end = network.block(absent, signed_twice);
    for n in barred {
        assert_eq!(network.key_state(n), KeyState::Barred, "for ever");
        assert_eq!(
            network.power(n),
            network.power(n).min(before_power(network, n))
        );
    }
    for n in signed_twice {
        let stays = end.unpunished.contains(&consensus(*n));
        assert!(stays || network.power(*n) == 0);
        assert!(stays || network.key_state(*n) == KeyState::Barred);
    }
    let all: u64 = before
        .iter()
        .filter(|v| v.status != Status::Barred)
        .map(|v| v.power)
        .sum();
    let after = network.wanted();
    let newly_jailed = after
        .iter()
        .zip(&before)
        .any(|(after, before)| after.status == Status::Jailed && before.status == Status::Active);
    let left: u64 = after
        .iter()
        .filter(|v| v.status == Status::Active)
        .map(|v| v.power)
        .sum();
    let barred_now: u64 = after
        .iter()
        .zip(&before)
        .filter(|(after, before)| after.status == Status::Barred && before.status != Status::Barred)
        .map(|(after, _)| after.power)
        .sum();
    assert!(
        !newly_jailed || left * 2 >= all - barred_now,
        "{left} of {all} left"
    );
    assert!(
        after
            .iter()
            .any(|validator| validator.status == Status::Active)
    );
}

/// Power of `n` in the set before the last block's update.
fn before_power(network: &Network, n: u8) -> u64 {
    let set = &network.sets[&(network.height + 1)];
    set.get(&public_key(n)).copied().unwrap_or(0)
}

/// At least a thousand histories; `PROPTEST_CASES` asks for more, in the soak.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases.max(1_000),
        ..config
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_history_breaks_the_set(
        founders in prop::collection::btree_map(1_u8..24, 4_u64..1_000, 1..7),
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let mut network = Network::new(founders);
        for operation in &operations {
            perform(&mut network, operation);
        }
        network.settle();
    }
}
