use std::net::TcpListener;

use super::*;

fn pods(range: &NodeRange, count: usize) -> Vec<PodAddress> {
    (0..count).map_while(|_| range.allocate()).collect()
}

#[test]
fn a_block_has_one_holder() {
    let first = AddressBlock::acquire(None).unwrap();
    let second = AddressBlock::acquire(Some(first.number())).unwrap();
    assert_ne!(first.number(), second.number());
}

#[test]
fn a_block_is_free_when_the_last_of_its_addresses_is_given_back() {
    let block = AddressBlock::acquire(None).unwrap();
    let number = block.number();
    let address = block.node(3).unwrap().allocate().unwrap();
    drop(block);
    assert_eq!(bind_block_socket(number).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(address);
    // Another test may hold the block for a moment.
    while bind_block_socket(number).is_err() {
        std::thread::yield_now();
    }
}

#[test]
fn only_blocks_that_nobody_else_uses_can_be_preferred() {
    for number in [0, 15, 251, 255] {
        let error = AddressBlock::acquire(Some(number)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("16 to 250"), "{error}");
    }
}

#[test]
fn nodes_and_services_share_a_block_without_overlap() {
    let block = AddressBlock::acquire(None).unwrap();
    let b = block.number();
    assert_eq!(block.node(0).unwrap().address(), Ipv4Addr::new(127, b, 0, 1));
    assert_eq!(block.node(14).unwrap().address(), Ipv4Addr::new(127, b, 224, 1));
    assert_eq!(block.node(2).unwrap().network(), (Ipv4Addr::new(127, b, 32, 0), 20));
    assert_eq!(block.services(), (Ipv4Addr::new(127, b, 240, 0), 20));
    assert!(block.node(15).is_none());
}

#[test]
fn an_address_that_is_given_back_comes_last() {
    let block = AddressBlock::acquire(None).unwrap();
    let range = block.node(0).unwrap();
    let mut held = pods(&range, 3);
    let b = block.number();
    assert_eq!(held[0].ip(), Ipv4Addr::new(127, b, 0, 2));
    let given_back = held.remove(1).ip();
    // Another handle of the same range sees the same allocations.
    held.extend(pods(&block.node(0).unwrap(), usize::MAX));
    assert_eq!(held.last().unwrap().ip(), given_back);
    assert!(range.allocate().is_none());
}

#[test]
fn no_two_pods_have_the_same_address_and_none_looks_like_a_network() {
    let block = AddressBlock::acquire(None).unwrap();
    let held = pods(&block.node(1).unwrap(), usize::MAX);
    let distinct: BTreeSet<Ipv4Addr> = held.iter().map(PodAddress::ip).collect();
    // 16 times 254, without the node's own
    assert_eq!((held.len(), distinct.len()), (4063, 4063));
    assert!(distinct.iter().all(|ip| !matches!(ip.octets()[3], 0 | 255) && (16..32).contains(&ip.octets()[2])));
}

#[test]
fn a_program_can_listen_on_every_address() {
    let block = AddressBlock::acquire(None).unwrap();
    let range = block.node(7).unwrap();
    let one = range.allocate().unwrap();
    let other = range.allocate().unwrap();
    let listener = TcpListener::bind((one.ip(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    TcpListener::bind((other.ip(), port)).unwrap();
    TcpListener::bind((range.address(), port)).unwrap();
}
