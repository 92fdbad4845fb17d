use super::*;

fn limits(replicas: i64, surge: i64) -> RolloutLimits {
    RolloutLimits { replicas, max_surge: surge, max_unavailable: 1, is_rolling: true }
}

fn part(size: i64, most: i64) -> ReplicaSetShare {
    ReplicaSetShare { size, max_replicas: Some(most) }
}

#[test]
fn more_is_spread_by_size() {
    // From 10 + 3 to 15 + 3: five more over eight and five.
    assert_eq!(proportional_sizes(&limits(15, 3), &[part(8, 13), part(5, 13)], 13), [11, 7]);
}

#[test]
fn less_is_spread_by_size() {
    assert_eq!(proportional_sizes(&limits(5, 2), &[part(8, 13), part(5, 13)], 13), [4, 3]);
}

#[test]
fn the_largest_takes_what_is_left_over() {
    assert_eq!(proportional_sizes(&limits(6, 0), &[part(2, 5), part(2, 5), part(1, 5)], 5), [3, 2, 1]);
    assert_eq!(proportional_sizes(&limits(4, 0), &[part(4, 9), part(3, 9), part(2, 9)], 9), [2, 1, 1]);
}

#[test]
fn to_nothing_all_go() {
    assert_eq!(proportional_sizes(&limits(0, 1), &[part(8, 13), part(5, 13)], 13), [0, 0]);
}

#[test]
fn without_the_annotation_the_pods_that_are_there_are_the_whole() {
    let unknown = |size| ReplicaSetShare { size, max_replicas: None };
    assert_eq!(proportional_sizes(&limits(20, 0), &[unknown(5), unknown(5)], 10), [10, 10]);
    assert_eq!(proportional_sizes(&limits(20, 0), &[unknown(5), unknown(5)], 0), [15, 5]);
}

#[test]
fn the_sum_is_always_what_is_allowed() {
    for replicas in 0..40 {
        for surge in [0, 1, 5] {
            let allowed = if replicas == 0 { 0 } else { replicas + surge };
            for parts in [[part(8, 13), part(5, 13)], [part(12, 13), part(1, 13)], [part(1, 2), part(1, 0)]] {
                let sizes = proportional_sizes(&limits(replicas, surge), &parts, 2);
                assert!(sizes.iter().all(|size| *size >= 0));
                assert_eq!(sizes.iter().sum::<i64>(), allowed, "{replicas} {surge} {parts:?}: {sizes:?}");
            }
        }
    }
}
