use super::*;

fn limits(replicas: i64, surge: i64, unavailable: i64) -> RolloutLimits {
    RolloutLimits { replicas, max_surge: surge, max_unavailable: unavailable, is_rolling: true }
}

fn size(wanted: i64, available: i64) -> ReplicaSetSize {
    ReplicaSetSize { desired: wanted, available }
}

#[test]
fn the_new_grows_into_the_room_that_there_is() {
    assert_eq!(scaled_up_size(&limits(10, 3, 2), 0, 10), 3);
    assert_eq!(scaled_up_size(&limits(10, 3, 2), 3, 13), 3);
    assert_eq!(scaled_up_size(&limits(10, 3, 2), 3, 11), 5);
    assert_eq!(scaled_up_size(&limits(10, 3, 2), 8, 9), 10, "never beyond what is asked for");
    assert_eq!(scaled_up_size(&limits(10, 0, 1), 0, 20), 0);
}

#[test]
fn nothing_is_given_up_that_must_stay() {
    assert_eq!(scaled_down_sizes(&limits(10, 3, 0), &[size(10, 10)], size(3, 0)), [10]);
    assert_eq!(scaled_down_sizes(&limits(10, 3, 2), &[size(10, 10)], size(3, 0)), [8]);
    assert_eq!(scaled_down_sizes(&limits(10, 3, 0), &[size(10, 10)], size(3, 3)), [7]);
}

#[test]
fn what_does_not_work_goes_first() {
    // A second rollout, after one whose pods never became available.
    let old = [size(8, 8), size(5, 0)];
    assert_eq!(scaled_down_sizes(&limits(10, 3, 2), &old, size(0, 0)), [8, 0]);
}

#[test]
fn the_oldest_give_first() {
    assert_eq!(scaled_down_sizes(&limits(10, 3, 0), &[size(2, 2), size(5, 5)], size(6, 6)), [0, 4]);
}

#[test]
fn pods_that_are_about_to_go_count_for_nothing() {
    // The old set has been scaled to two, but still has three pods.
    assert_eq!(scaled_down_sizes(&limits(3, 1, 0), &[size(2, 3)], size(2, 1)), [2]);
}

/// A rollout stays within its limits and ends, in whatever order pods become available.
#[test]
fn every_rollout_ends_within_its_limits() {
    for (replicas, surge, unavailable) in [(1, 1, 0), (3, 1, 0), (3, 0, 1), (10, 3, 2), (10, 10, 10), (7, 2, 1)] {
        let limits = limits(replicas, surge, unavailable);
        let mut old = size(replicas, replicas);
        let mut new = size(0, 0);
        for _ in 0..100 {
            new.desired = scaled_up_size(&limits, new.desired, old.desired + new.desired);
            assert!(old.desired + new.desired <= limits.max_total());
            old.desired = scaled_down_sizes(&limits, &[old], new)[0];
            old.available = old.desired;
            assert!(old.available + new.available >= limits.min_available(), "{limits:?} {old:?} {new:?}");
            // Pods become ready one after the other.
            new.available = new.desired.min(new.available + 1);
        }
        assert_eq!((old.desired, new), (0, size(replicas, replicas)), "{limits:?}");
    }
}
