use super::*;

#[test]
fn free_ports_are_all_different() {
    let ports = assign(8, None).expect("a machine has 32 free ports");
    let all: BTreeSet<u16> = ports
        .iter()
        .flat_map(|node| [node.http, node.ws, node.cometbft_rpc, node.p2p])
        .collect();
    assert_eq!(all.len(), 32);
}

#[test]
fn a_base_gives_ten_to_a_node() {
    let ports = assign(2, Some(20_000)).expect("both fit");
    assert_eq!(ports[1].http, 20_010);
    assert_eq!(ports[1].p2p, 20_013);
}

#[test]
fn refuses_a_base_too_high_for_all_nodes() {
    assert!(assign(2, Some(65_520)).is_err());
    assert!(assign(1, Some(0)).is_err());
}
