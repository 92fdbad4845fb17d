use super::*;
use crate::wire::put_bytes;

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

fn items(limit: usize) -> SplitLimit {
    SplitLimit::Items(NonZeroUsize::new(limit).unwrap())
}

fn bytes(limit: usize) -> SplitLimit {
    SplitLimit::Bytes(NonZeroUsize::new(limit).unwrap())
}

fn pieces(signal: Signal, request: &Bytes, limit: SplitLimit) -> Vec<(Bytes, usize)> {
    split(signal, request, limit).map(|piece| (piece.bytes, piece.items)).collect()
}

/// A resource entry named by a letter, with spans named by numbers.
fn resource(name: u8, spans: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let spans = spans.into_iter().flat_map(|span| field(2, &field(5, &[span]))).collect::<Vec<u8>>();
    field(1, &[field(1, &[0x10, name]), field(2, &[field(1, b""), spans].concat())].concat())
}

#[test]
fn nothing_has_no_pieces_and_what_fits_is_the_same_bytes() {
    assert!(pieces(Signal::Traces, &Bytes::new(), items(1)).is_empty());
    let request = Bytes::from(resource(b'a', 0..3));
    let all = pieces(Signal::Traces, &request, items(3));
    assert_eq!(all, [(request.clone(), 3)]);
    assert_eq!(all[0].0.as_ptr(), request.as_ptr());
}

#[test]
fn whole_resources_share_the_memory_of_the_request() {
    let request = Bytes::from([resource(b'a', 0..2), resource(b'b', 0..1), resource(b'c', 0..3)].concat());
    let pieces = pieces(Signal::Traces, &request, items(3));
    let first = resource(b'a', 0..2).len() + resource(b'b', 0..1).len();
    assert_eq!(pieces, [(request.slice(..first), 3), (request.slice(first..), 3)]);
    assert_eq!(pieces[1].0.as_ptr(), request.slice(first..).as_ptr());
}

#[test]
fn a_resource_is_cut_where_the_piece_is_full_and_headers_are_repeated() {
    let request = Bytes::from([resource(b'a', 0..1), resource(b'b', 0..4)].concat());
    let expected = [
        (Bytes::from([resource(b'a', 0..1), resource(b'b', 0..1)].concat()), 2),
        (Bytes::from(resource(b'b', 1..3)), 2),
        (Bytes::from(resource(b'b', 3..4)), 1),
    ];
    assert_eq!(pieces(Signal::Traces, &request, items(2)), expected);
}

#[test]
fn by_bytes_a_piece_is_filled_to_the_last_byte() {
    let request = Bytes::from(resource(b'a', 0..4));
    let half = resource(b'a', 0..2);
    let expected = [(Bytes::from(half.clone()), 2), (Bytes::from(resource(b'a', 2..4)), 2)];
    assert_eq!(pieces(Signal::Traces, &request, bytes(half.len())), expected);
    assert_eq!(pieces(Signal::Traces, &request, bytes(half.len() - 1)).len(), 4);
}

#[test]
fn by_bytes_an_item_that_is_too_large_goes_alone() {
    let large = field(2, &field(5, &[b'x'; 300]));
    let small = field(2, &field(5, b"s"));
    let of = |spans: &[u8]| Bytes::from(field(1, &field(2, spans)));
    let request = of(&[small.clone(), large.clone(), small.clone()].concat());
    let expected = [(of(&small), 1), (of(&large), 1), (of(&small), 1)];
    assert_eq!(pieces(Signal::Traces, &request, bytes(100)), expected);
}

#[test]
fn a_metric_is_cut_between_its_points_unless_it_has_two_data_messages() {
    let metric = |points: usize| [field(1, b"cpu"), field(7, &[field(1, b"").repeat(points), vec![0x10, 2]].concat())];
    let of = |metric: &[u8]| Bytes::from(field(1, &field(2, &field(2, metric))));
    let request = of(&metric(3).concat());
    let one = of(&metric(1).concat());
    // The data message's own fields come before its points once it is cut.
    let found = pieces(Signal::Metrics, &request, items(1));
    assert_eq!(found.iter().map(|(bytes, items)| (bytes.len(), *items)).collect::<Vec<_>>(), [(one.len(), 1); 3]);
    let doubled = of(&[metric(3).concat(), metric(2).concat()].concat());
    assert_eq!(pieces(Signal::Metrics, &doubled, items(1)), [(doubled.clone(), 2)]);
}

#[test]
fn what_has_no_items_rides_along() {
    let request = Bytes::from([resource(b'a', 0..1), resource(b'b', 0..0), field(99, b"unknown")].concat());
    assert_eq!(pieces(Signal::Traces, &request, items(1)), [(request.clone(), 1)]);
}

#[test]
fn by_bytes_headers_that_fill_the_limit_are_not_repeated_for_every_item() {
    let spans = field(2, b"").repeat(1000);
    let request = Bytes::from(field(1, &[field(1, &[0; 90]), field(2, &spans)].concat()));
    assert_eq!(pieces(Signal::Traces, &request, bytes(100)), [(request.clone(), 1000)]);
    let size = pieces(Signal::Traces, &request, bytes(110)).iter().map(|(bytes, _)| bytes.len()).sum::<usize>();
    assert!(size > request.len() && size < 16 * request.len(), "{size}");
}
