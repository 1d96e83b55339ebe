use super::*;

#[test]
fn development_network_builds_and_reads_back() {
    let genesis = dev_genesis();
    assert_eq!(Genesis::parse(&genesis.to_json()), Ok(genesis));
}
