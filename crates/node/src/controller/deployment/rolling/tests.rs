use super::*;

fn limits(replicas: i64, surge: i64, unavailable: i64) -> Limits {
    Limits { replicas, surge, unavailable, is_rolling: true }
}

fn size(wanted: i64, available: i64) -> Size {
    Size { wanted, available }
}

#[test]
fn the_new_grows_into_the_room_that_there_is() {
    assert_eq!(grown(&limits(10, 3, 2), 0, 10), 3);
    assert_eq!(grown(&limits(10, 3, 2), 3, 13), 3);
    assert_eq!(grown(&limits(10, 3, 2), 3, 11), 5);
    assert_eq!(grown(&limits(10, 3, 2), 8, 9), 10, "never beyond what is asked for");
    assert_eq!(grown(&limits(10, 0, 1), 0, 20), 0);
}

#[test]
fn nothing_is_given_up_that_must_stay() {
    assert_eq!(shrunk(&limits(10, 3, 0), &[size(10, 10)], size(3, 0)), [10]);
    assert_eq!(shrunk(&limits(10, 3, 2), &[size(10, 10)], size(3, 0)), [8]);
    assert_eq!(shrunk(&limits(10, 3, 0), &[size(10, 10)], size(3, 3)), [7]);
}

#[test]
fn what_does_not_work_goes_first() {
    // A second rollout over one that never worked.
    let old = [size(8, 8), size(5, 0)];
    assert_eq!(shrunk(&limits(10, 3, 2), &old, size(0, 0)), [8, 0]);
}

#[test]
fn the_oldest_give_first() {
    assert_eq!(shrunk(&limits(10, 3, 0), &[size(2, 2), size(5, 5)], size(6, 6)), [0, 4]);
}

#[test]
fn pods_that_are_about_to_go_count_for_nothing() {
    // The old one was told to shrink to two, but has not yet.
    assert_eq!(shrunk(&limits(3, 1, 0), &[size(2, 3)], size(2, 1)), [2]);
}

/// Whatever becomes available when, a rollout stays within its limits and ends.
#[test]
fn every_rollout_ends_within_its_limits() {
    for (replicas, surge, unavailable) in [(1, 1, 0), (3, 1, 0), (3, 0, 1), (10, 3, 2), (10, 10, 10), (7, 2, 1)] {
        let limits = limits(replicas, surge, unavailable);
        let (mut old, mut new) = (size(replicas, replicas), size(0, 0));
        for _ in 0..100 {
            new.wanted = grown(&limits, new.wanted, old.wanted + new.wanted);
            assert!(old.wanted + new.wanted <= limits.most());
            old.wanted = shrunk(&limits, &[old], new)[0];
            old.available = old.wanted;
            assert!(old.available + new.available >= limits.fewest(), "{limits:?} {old:?} {new:?}");
            // One pod after the other gets ready.
            new.available = new.wanted.min(new.available + 1);
        }
        assert_eq!((old.wanted, new), (0, size(replicas, replicas)), "{limits:?}");
    }
}
