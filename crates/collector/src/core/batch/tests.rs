use proptest::prelude::*;

use super::*;
use crate::core::{
    Budget,
    testing::{numbers, part, request},
};

fn items(max: usize) -> SplitLimit {
    SplitLimit::Items(NonZeroUsize::new(max).unwrap())
}

fn bytes(max: usize) -> SplitLimit {
    SplitLimit::Bytes(NonZeroUsize::new(max).unwrap())
}

/// A batch of requests of these sizes, with consecutively numbered spans.
fn joined(sizes: &[u64]) -> Batch {
    let mut first = 0;
    let mut batch = Batch::empty(Signal::Traces);
    for size in sizes {
        batch.append(request(first..first + size));
        first += size;
    }
    batch
}

#[test]
fn a_batch_within_the_limit_stays_as_it_is() {
    let batches = joined(&[2, 3]).split(items(5));
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].parts().len(), 2);
}

#[test]
fn batches_are_filled_and_remember_the_requests_they_are_of() {
    let batches = joined(&[2, 5, 1]).split(items(3));
    let parts: Vec<Vec<usize>> = batches.iter().map(|b| b.parts().iter().map(|p| p.items).collect()).collect();
    assert_eq!(parts, [vec![2, 1], vec![3], vec![1, 1]]);
}

#[test]
fn to_top_up_a_batch_does_not_cut_the_rest_of_a_request_small() {
    let batches = joined(&[9, 20]).split(items(10));
    let cut: Vec<usize> = batches.iter().map(|b| b.parts().len()).collect();
    assert_eq!(cut, [2, 1, 1], "the rest is one piece for each batch");
}

#[test]
fn a_batch_is_taken_apart_between_its_requests() {
    let apart = |sizes: &[u64], pieces| -> Vec<Vec<usize>> {
        let batches = joined(sizes).split_into(pieces);
        assert!(batches.iter().all(|b| b.items() == b.parts().iter().map(|p| p.items).sum::<usize>()));
        batches.iter().map(|b| b.parts().iter().map(|p| p.items).collect()).collect()
    };
    assert_eq!(apart(&[1, 2, 3], 8), [[1], [2], [3]]);
    assert_eq!(apart(&[1, 2, 3, 4, 5], 2), [vec![1, 2, 3], vec![4, 5]]);
    assert_eq!(apart(&[], 8), Vec::<Vec<usize>>::new());
}

#[test]
fn pieces_that_are_larger_than_the_request_are_charged_for() {
    let budget = Budget::new(1 << 20, 0);
    let member = budget.join();
    let request = part(0..50, Charge::exempt());
    let charge = member.reserve(request.bytes.len() as u64).unwrap();
    let batch = Batch::single(Signal::Traces, Part { charge: Arc::new(charge), ..request });
    let batches = batch.split(items(1));
    assert_eq!(batches.len(), 50);
    let held: usize = batches.iter().map(Batch::bytes).sum();
    assert!(budget.used() >= held as u64, "{} of {held}", budget.used());
    drop(batches);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_request_whose_pieces_there_is_no_memory_for_stays_whole() {
    let request = part(0..50, Charge::exempt());
    let budget = Budget::new(request.bytes.len() as u64, 0);
    let charge = budget.join().reserve(request.bytes.len() as u64).unwrap();
    let mut batch = joined(&[1]);
    batch.push(Part { charge: Arc::new(charge), ..request });
    batch.append(joined(&[1]));
    let sizes: Vec<usize> = batch.split(items(2)).iter().map(Batch::items).collect();
    assert_eq!(sizes, [1, 50, 1]);
}

proptest! {
    #[test]
    fn splitting_loses_nothing_keeps_the_order_and_exceeds_no_limit(
        sizes in prop::collection::vec(1u64..20, 1..10),
        max in 1usize..40,
        by_bytes in any::<bool>(),
    ) {
        let whole = joined(&sizes);
        let all = numbers(&whole);
        let limit = if by_bytes { bytes(max * 8) } else { items(max) };
        let batches = whole.split(limit);
        prop_assert_eq!(batches.iter().flat_map(numbers).collect::<Vec<_>>(), all);
        for batch in &batches {
            prop_assert!(fits(limit, batch.items(), batch.bytes()) || batch.items() == 1, "{} items", batch.items());
        }
    }
}
