use super::*;
use proptest::prelude::*;

/// Four equal validators; window 10, jail 20.
fn four() -> Network {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.block(&[], &[]);
    network
}

#[test]
fn jails_at_the_exact_block() {
    let mut network = four();
    for _ in 0..5 {
        assert_eq!(
            network.block(&[2], &[]).updates,
            [],
            "half of the window is not more than half"
        );
    }
    let end = network.block(&[2], &[]);
    let public_key = public_key(2);
    assert_eq!(
        end.updates,
        [ValidatorUpdate {
            public_key,
            power: 0
        }]
    );
    assert_eq!(network.status(2), Status::Jailed);
    let jailed = network.wanted()[1];
    assert_eq!(jailed.jailed_until, network.height + 20);
    assert_eq!(network.key_state(2), KeyState::Held);
}

#[test]
fn misses_fall_out_of_the_window() {
    let mut network = four();
    for _ in 0..5 {
        network.block(&[2], &[]);
    }
    for _ in 0..5 {
        network.block(&[], &[]);
    }
    // Each new miss takes the place of an old one.
    for _ in 0..5 {
        assert_eq!(network.block(&[2], &[]).updates, []);
    }
    assert_eq!(network.block(&[2], &[]).updates.len(), 1);
}

#[test]
fn never_jails_when_less_than_half_of_the_power_would_be_left() {
    let mut network = four();
    for _ in 0..6 {
        network.block(&[2, 3, 4], &[]);
    }
    let jailed: Vec<u8> = [1, 2, 3, 4]
        .into_iter()
        .filter(|n| network.status(*n) == Status::Jailed)
        .collect();
    assert_eq!(jailed.len(), 2, "half may stay out, no more: {jailed:?}");
    for _ in 0..20 {
        network.block(&[2, 3, 4], &[]);
    }
    let active = network.active();
    assert_eq!(active.len(), 2);
}

#[test]
fn never_jails_a_lone_validator() {
    let mut network = Network::new([(1, 10)]);
    for _ in 0..30 {
        assert_eq!(network.block(&[1], &[]).updates, []);
    }
    assert_eq!(network.status(1), Status::Active);
}

#[test]
fn weighs_power_not_heads() {
    // 2 holds most: without it less than half is left.
    let mut network = Network::new([(1, 10), (2, 31), (3, 10), (4, 10)]);
    for _ in 0..20 {
        network.block(&[2], &[]);
    }
    assert_eq!(network.status(2), Status::Active);
    // With 30 exactly half is left.
    let mut network = Network::new([(1, 10), (2, 30), (3, 10), (4, 10)]);
    for _ in 0..20 {
        network.block(&[2], &[]);
    }
    assert_eq!(network.status(2), Status::Jailed);
}

#[test]
fn a_validator_that_comes_back_starts_with_a_clean_window() {
    let mut network = four();
    for _ in 0..6 {
        network.block(&[2], &[]);
    }
    assert_eq!(network.power(2), 0);
    for _ in 0..20 {
        network.block(&[], &[]);
    }
    network.change(2, |validator| validator.status = Status::Active);
    network.settle();
    assert_eq!(network.power(2), 10);
    network.block(&[], &[]);
    network.block(&[], &[]);
    for _ in 0..5 {
        assert_eq!(network.block(&[2], &[]).updates, []);
    }
    assert_eq!(network.block(&[2], &[]).updates.len(), 1);
}

#[test]
fn the_ring_leaves_no_slot_behind() {
    let mut network = four();
    let slots = network.slots.clone();
    for _ in 0..3 {
        network.block(&[2, 4], &[]);
    }
    assert_ne!(network.slots, slots);
    for _ in 0..10 {
        network.block(&[], &[]);
    }
    assert_eq!(network.slots, slots);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Against a count made anew from the record of all blocks.
    #[test]
    fn counts_as_a_plain_recount_does(
        window in 2_u64..600,
        misses in prop::collection::vec(prop::bool::weighted(0.45), 1..900),
    ) {
        let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
        network.parameters.downtime_window_blocks = window;
        network.block(&[], &[]);
        let mut record: Vec<bool> = Vec::new();
        for missed in misses {
            record.push(missed);
            let absent: &[u8] = if missed { &[3] } else { &[] };
            let end = network.block(absent, &[]);
            let count = record.iter().rev().take(window as usize).filter(|missed| **missed).count();
            let jailed = missed && count as u64 * 2 > window;
            prop_assert_eq!(!end.updates.is_empty(), jailed);
            if jailed {
                break;
            }
            let active = network.active();
            let entry = active.iter().find(|v| v.public_key == public_key(3)).expect("in");
            prop_assert_eq!(entry.missed as usize, count);
        }
    }
}
