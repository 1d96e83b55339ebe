use super::*;

fn removed(n: u8) -> ValidatorUpdate {
    ValidatorUpdate {
        public_key: public_key(n),
        power: 0,
    }
}

#[test]
fn removes_at_once_and_bars_the_key() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10)]);
    let end = network.block(&[], &[3]);
    assert_eq!(end.updates, [removed(3)], "though it is a third");
    assert_eq!(network.status(3), Status::Barred);
    assert_eq!(network.key_state(3), KeyState::Barred);
    assert_eq!(network.settle(), 0);
    // Payout stays known: the validator proposes for two blocks yet.
    let slot = key_slot(consensus_address(&public_key(3)));
    assert_eq!(key_payout(network.slots[&slot]), Address::repeat_byte(103));
}

#[test]
fn the_same_evidence_twice_counts_once() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    let end = network.block(&[], &[3, 3]);
    assert_eq!(end.updates, [removed(3)]);
    let end = network.block(&[], &[3]);
    assert_eq!(
        end,
        EndBlock {
            writes: end.writes.clone(),
            ..EndBlock::default()
        }
    );
    assert!(end.writes.is_empty());
}

#[test]
fn a_light_client_attack_counts_as_double_signing() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    let mut input = network.input(&[], &[3]);
    input.misbehaviour[0].duplicate_vote = false;
    let end = evaluate(&network.parameters, &input, &mut network.read()).expect("in memory");
    assert_eq!(end.updates, [removed(3)]);
    assert_eq!(end, network.block(&[], &[3]));
}

#[test]
fn the_last_validator_is_never_removed() {
    let mut network = Network::new([(1, 10)]);
    let end = network.block(&[], &[1]);
    assert_eq!(end.updates, []);
    assert_eq!(end.unpunished, [consensus(1)]);
    assert_eq!(network.status(1), Status::Active);
    assert_eq!(network.key_state(1), KeyState::Held);
}

#[test]
fn when_all_signed_twice_one_stays() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    let end = network.block(&[], &[1, 2, 3, 4]);
    assert_eq!(end.updates.len(), 3);
    assert_eq!(end.unpunished.len(), 1);
    assert_eq!(network.active().len(), 1);
    assert_eq!(network.settle(), 0);
}

#[test]
fn the_last_that_is_wanted_is_kept_though_another_is_on_its_way_out() {
    let mut network = Network::new([(1, 10), (2, 10)]);
    network.remove(2);
    network.block(&[], &[]);
    assert!(network.power(2) > 0, "a half leaves in steps");
    let end = network.block(&[], &[1]);
    assert_eq!(end.unpunished, [consensus(1)]);
    network.settle();
    assert_eq!(network.power(1), 10);
}

#[test]
fn the_last_is_kept_though_another_is_about_to_join() {
    let mut network = Network::new([(1, 10)]);
    network.add(2, 10);
    let end = network.block(&[], &[1]);
    assert_eq!(end.unpunished, [consensus(1)]);
    assert_eq!(network.status(1), Status::Active);
}

#[test]
fn a_joiner_with_little_power_carries_on_alone() {
    let mut network = Network::new([(1, 4)]);
    network.add(2, 10);
    network.block(&[], &[]);
    assert_eq!(network.power(2), 1);
    let end = network.block(&[], &[1]);
    assert_eq!(end.updates, [removed(1)]);
    assert_eq!(network.power(2), 1);
    network.settle();
    assert_eq!(network.power(2), 10);
}

#[test]
fn removal_uses_up_the_share_of_its_block() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.change(1, |validator| validator.power = 13);
    let end = network.block(&[], &[4]);
    // A third of 40 is above 13; 10 of it went with the offender.
    let grown = ValidatorUpdate {
        public_key: public_key(1),
        power: 13,
    };
    assert!(end.updates.contains(&grown) && end.updates.contains(&removed(4)));

    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.change(1, |validator| validator.power = 14);
    let end = network.block(&[], &[4]);
    assert_eq!(end.updates.len(), 2);
    assert_eq!(network.power(1), 13);
}

#[test]
fn a_key_that_was_rotated_out_is_barred_all_the_same() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.change(4, |validator| validator.public_key = public_key(9));
    network.settle();
    assert_eq!(network.key_state(4), KeyState::Released);
    let end = network.block(&[], &[4]);
    assert_eq!(end.updates, []);
    assert_eq!(network.key_state(4), KeyState::Barred);
    assert_eq!(network.status(9), Status::Active, "the new key did nothing");
}

#[test]
fn a_key_on_its_way_out_goes_at_once() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10)]);
    network.remove(3);
    network.block(&[], &[]);
    assert_eq!(network.power(3), 1);
    let end = network.block(&[], &[3]);
    assert_eq!(end.updates, [removed(3)]);
    assert_eq!(network.key_state(3), KeyState::Barred);
}

#[test]
fn a_jailed_key_is_barred() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.change(2, |validator| validator.status = Status::Jailed);
    network.settle();
    let end = network.block(&[], &[2]);
    assert_eq!(end.updates, []);
    assert_eq!(network.status(2), Status::Barred);
    assert_eq!(network.key_state(2), KeyState::Barred);
}

#[test]
fn a_barred_key_never_counts_for_downtime() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.block(&[], &[2]);
    for _ in 0..20 {
        assert_eq!(network.block(&[2], &[]).updates, []);
    }
    assert_eq!(network.status(2), Status::Barred);
}
