use super::*;

#[test]
fn an_idle_block_reads_little_and_writes_nothing() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.block(&[], &[]);
    let reads = Cell::new(0);
    let input = network.input(&[], &[]);
    let end = evaluate(&network.parameters, &input, &mut |slot| {
        reads.set(reads.get() + 1);
        network.read()(slot)
    })
    .expect("in memory");
    assert_eq!(end, EndBlock::default());
    assert_eq!(
        reads.get(),
        2 + 2 * 4,
        "length, pending, two words per validator"
    );
}

#[test]
fn a_joiner_below_a_third_is_in_at_once() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.add(5, 10);
    let end = network.block(&[], &[]);
    let public_key = public_key(5);
    assert_eq!(
        end.updates,
        [ValidatorUpdate {
            public_key,
            power: 10
        }]
    );
    assert!(!network.slots.contains_key(&U256::from(SLOT_PENDING)));
}

#[test]
fn a_joiner_to_a_small_set_starts_with_less_power() {
    let mut network = Network::new([(1, 100)]);
    network.add(2, 100);
    let mut powers = Vec::new();
    for _ in 0..5 {
        network.block(&[], &[]);
        powers.push(network.power(2));
    }
    // Below a third of 100, of 133, of 177, of 236: then it is there.
    assert_eq!(powers, [33, 77, 100, 100, 100]);

    let mut network = Network::new([(1, 10), (2, 10), (3, 10)]);
    network.add(4, 10);
    network.block(&[], &[]);
    assert_eq!(network.power(4), 9);
    network.block(&[], &[]);
    assert_eq!(network.power(4), 10);
}

#[test]
fn a_third_leaves_in_two_steps() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10)]);
    network.remove(2);
    network.block(&[], &[]);
    assert_eq!(network.power(2), 1);
    network.block(&[], &[]);
    assert_eq!(network.power(2), 0);
    assert_eq!(network.key_state(2), KeyState::Released);
    assert_eq!(network.settle(), 0);
}

#[test]
fn a_lone_validator_rotates_its_key() {
    let mut network = Network::new([(1, 10)]);
    network.change(1, |validator| validator.public_key = public_key(9));
    network.settle();
    assert_eq!(network.power(1), 0);
    assert_eq!(network.power(9), 10);
}

#[test]
fn the_whole_set_is_exchanged() {
    let mut network = Network::new([(1, 4), (2, 4)]);
    network.want(|validators| {
        validators.clear();
    });
    network.add(7, 1_000_000);
    network.add(8, 4);
    let blocks = network.settle();
    assert!(blocks > 2, "{blocks}");
}

#[test]
fn the_largest_powers_are_reached_without_passing_the_largest_total() {
    let most = cloister_genesis::TOTAL_POWER_MAX;
    let mut network = Network::new([(1, most)]);
    network.want(Vec::clear);
    network.add(2, most);
    network.settle();
    assert_eq!(network.power(2), most);
    network.want(Vec::clear);
    network.add(3, 4);
    network.settle();
    assert_eq!(network.power(3), 4);
}

#[test]
fn a_power_changed_and_changed_back_changes_nothing() {
    let mut network = Network::new([(1, 10), (2, 10), (3, 10), (4, 10)]);
    network.change(1, |validator| validator.power = 12);
    network.change(1, |validator| validator.power = 10);
    let end = network.block(&[], &[]);
    assert_eq!(end.updates, []);
    assert_eq!(network.settle(), 0);
}
