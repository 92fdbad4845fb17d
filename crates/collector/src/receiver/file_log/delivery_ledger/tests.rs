use proptest::prelude::*;

use super::*;

const OUTPUT: OutputKey = OutputKey(1);
const LOG: StreamId = StreamId(7);

fn at(offset: u64) -> LogPosition {
    LogPosition::new(offset / 100, offset % 100)
}

fn range(from: u64, to: u64) -> LogRange {
    LogRange { from: at(from), to: at(to) }
}

fn ledger() -> DeliveryLedger {
    let mut ledger = DeliveryLedger::default();
    ledger.open(OUTPUT, LOG, at(0));
    ledger
}

#[test]
fn position_is_committed_up_to_the_first_range_in_flight() {
    let mut ledger = ledger();
    for (request, from) in [(1, 0), (2, 10), (3, 20)] {
        ledger.give(OUTPUT, LOG, range(from, from + 10), request);
    }
    assert_eq!(ledger.settle(OUTPUT, LOG, 2), None);
    assert_eq!(ledger.settle(OUTPUT, LOG, 1), Some(at(20)));
    assert_eq!(ledger.settle(OUTPUT, LOG, 3), Some(at(30)));
}

#[test]
fn returned_range_is_read_again_and_what_was_dealt_with_behind_it_is_not() {
    let mut ledger = ledger();
    for (request, from) in [(1, 0), (2, 10), (3, 20), (4, 30)] {
        ledger.give(OUTPUT, LOG, range(from, from + 10), request);
    }
    ledger.settle(OUTPUT, LOG, 1);
    ledger.take_back(OUTPUT, LOG, 2);
    ledger.settle(OUTPUT, LOG, 3);
    ledger.take_back(OUTPUT, LOG, 4);
    let point = ledger.resume_point(OUTPUT, LOG).unwrap();
    assert_eq!(point, ResumePoint { position: at(10), skips: vec![range(20, 30)] });
    ledger.give(OUTPUT, LOG, range(10, 20), 5);
    assert_eq!(ledger.settle(OUTPUT, LOG, 5), Some(at(30)));
    assert_eq!(ledger.resume_point(OUTPUT, LOG).unwrap(), ResumePoint { position: at(30), skips: Vec::new() });
}

#[test]
fn everything_is_read_again_behind_a_returned_request_that_holds_more_than_its_range() {
    let mut ledger = ledger();
    ledger.give(OUTPUT, LOG, range(0, 10), 1);
    ledger.give(OUTPUT, LOG, range(10, 10), 2);
    ledger.note_more(OUTPUT, LOG, 2);
    ledger.give(OUTPUT, LOG, range(10, 60), 3);
    ledger.settle(OUTPUT, LOG, 1);
    ledger.take_back(OUTPUT, LOG, 2);
    assert_eq!(ledger.settle(OUTPUT, LOG, 3), None, "what is behind the returned request is not committed");
    assert_eq!(ledger.resume_point(OUTPUT, LOG).unwrap(), ResumePoint { position: at(10), skips: Vec::new() });
    ledger.give(OUTPUT, LOG, range(10, 60), 4);
    assert_eq!(ledger.settle(OUTPUT, LOG, 4), Some(at(60)));
}

#[test]
fn range_without_anything_to_deliver_waits_for_those_before_it() {
    let mut ledger = ledger();
    ledger.give(OUTPUT, LOG, range(0, 10), 1);
    assert_eq!(ledger.pass(OUTPUT, LOG, range(10, 20)), None);
    assert_eq!(ledger.settle(OUTPUT, LOG, 1), Some(at(20)));
}

#[test]
fn known_log_stays_as_it_is_when_it_is_opened_again() {
    let mut ledger = ledger();
    ledger.give(OUTPUT, LOG, range(0, 10), 1);
    ledger.settle(OUTPUT, LOG, 1);
    ledger.open(OUTPUT, LOG, at(5));
    assert_eq!(ledger.resume_point(OUTPUT, LOG).unwrap().position, at(10));
    assert_eq!(ledger.settle(OUTPUT, LOG, 9), None);
}

/// A reader that gives ranges from the resume point on, and an output that settles or returns them in any order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Give(u64),
    Settle(usize),
    Return(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..30_u64).prop_map(Step::Give),
        any::<usize>().prop_map(Step::Settle),
        any::<usize>().prop_map(Step::Return),
    ]
}

proptest! {
    #[test]
    fn each_byte_is_given_until_it_is_dealt_with_and_never_twice(steps in prop::collection::vec(step(), 1..60)) {
        let mut ledger = ledger();
        // What is settled, and what is in flight, byte by byte.
        let mut settled = vec![false; 4000];
        let mut in_flight: Vec<(u64, std::ops::Range<usize>)> = Vec::new();
        let mut next = 0;
        let mut committed = 0;
        for step in steps {
            let mut moved = None;
            match step {
                Step::Give(length) => {
                    let point = ledger.resume_point(OUTPUT, LOG).unwrap();
                    let flat = |position: LogPosition| position.generation * 100 + position.offset;
                    let from = flat(point.position);
                    let bound = point.skips.first().map_or(u64::MAX, |skip| flat(skip.from));
                    let to = (from + length).min(bound).min(4000);
                    let bytes = from as usize..to as usize;
                    let is_new = bytes.clone().all(|byte| !settled[byte])
                        && in_flight.iter().all(|(_, other)| other.end <= bytes.start || bytes.end <= other.start);
                    prop_assert!(is_new, "{bytes:?}");
                    next += 1;
                    ledger.give(OUTPUT, LOG, range(from, to), next);
                    in_flight.push((next, bytes));
                }
                Step::Settle(at) if !in_flight.is_empty() => {
                    let (request, bytes) = in_flight.swap_remove(at % in_flight.len());
                    bytes.for_each(|byte| settled[byte] = true);
                    moved = ledger.settle(OUTPUT, LOG, request);
                }
                Step::Return(at) if !in_flight.is_empty() => {
                    let (request, _) = in_flight.swap_remove(at % in_flight.len());
                    ledger.take_back(OUTPUT, LOG, request);
                }
                Step::Settle(_) | Step::Return(_) => {}
            }
            if let Some(position) = moved {
                let reached = (position.generation * 100 + position.offset) as usize;
                prop_assert!(reached > committed);
                committed = reached;
            }
            let expected = settled.iter().position(|settled| !settled).unwrap_or(settled.len());
            prop_assert_eq!(committed, expected);
        }
    }
}
