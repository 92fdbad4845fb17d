use super::*;

fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn usual() -> ListenAddresses {
    ListenAddresses { page: at(16686), api: at(6443), otlp: at(4317), otlp_http: at(4318) }
}

#[test]
fn what_is_free_is_taken_as_it_is_wanted() {
    let found = usual().next_free(|_| true).unwrap();
    assert_eq!(found, usual());
    assert_eq!(found.moved_from(usual()), []);
}

#[test]
fn a_busy_port_moves_past_what_another_part_wants() {
    let busy = [at(4317), at(4319)];
    let found = usual().next_free(|address| !busy.contains(&address)).unwrap();
    assert_eq!((found.otlp, found.otlp_http), (at(4320), at(4318)));
    assert_eq!(found.moved_from(usual()), [MovedAddress { what: "OTLP over gRPC", from: at(4317), to: at(4320) }]);
}

#[test]
fn two_that_want_the_same_get_one_each() {
    let found = ListenAddresses { page: at(6443), ..usual() }.next_free(|_| true).unwrap();
    assert_eq!((found.page, found.api), (at(6443), at(6444)));
}

#[test]
fn any_port_stays_any_port() {
    let any = ListenAddresses { page: at(0), api: at(0), otlp: at(0), otlp_http: at(0) };
    assert_eq!(any.next_free(|_| true), Some(any));
    assert_eq!(usual().moved_from(any), []);
}

#[test]
fn the_last_port_has_none_after_it() {
    assert_eq!(ListenAddresses { page: at(65535), ..usual() }.next_free(|address| address != at(65535)), None);
    assert_eq!(usual().next_free(|_| false), None);
}

#[test]
fn a_port_that_somebody_listens_on_is_not_free() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    assert!(!is_free(address));
    drop(listener);
    assert!(is_free(address));
}
