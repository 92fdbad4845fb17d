use super::*;

#[test]
fn a_lone_member_has_the_whole_limit() {
    let budget = Budget::new(100, 0);
    let member = budget.join();
    let charge = member.reserve(100).expect("fits");
    assert!(member.reserve(1).is_none());
    drop(charge);
    assert!(member.reserve(100).is_some());
}

#[test]
fn a_member_that_takes_all_it_can_leaves_the_others_their_guarantee() {
    let budget = Budget::new(100, 0);
    let greedy = budget.join();
    let modest = budget.join();
    let mut held = Vec::new();
    while let Some(charge) = greedy.reserve(5) {
        held.push(charge);
    }
    assert_eq!(budget.used(), 75, "its own quarter and the pool");
    assert!(modest.reserve(25).is_some());
    assert!(modest.reserve(26).is_none());
}

#[test]
fn the_spike_is_kept_for_requests_under_way() {
    let budget = Budget::new(100, 20);
    let member = budget.join();
    let mut charge = member.reserve(80).expect("fits under the soft limit");
    assert!(member.reserve(1).is_none());
    assert!(charge.grow(20));
    assert!(!charge.grow(1));
    assert_eq!(charge.bytes(), 100);
    charge.shrink_to(10);
    assert_eq!(budget.used(), 10);
}

#[test]
fn a_member_that_leaves_gives_its_share_to_the_rest() {
    let budget = Budget::new(100, 0);
    let stays = budget.join();
    let leaves = budget.join();
    assert!(stays.reserve(80).is_none());
    drop(leaves);
    assert!(stays.reserve(80).is_some());
}

#[test]
fn resizing_keeps_what_is_held() {
    let budget = Budget::new(100, 0);
    let member = budget.join();
    let charge = member.reserve(90).expect("fits");
    budget.resize(50, 0);
    assert!(member.reserve(1).is_none());
    drop(charge);
    assert!(member.reserve(50).is_some());
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_member_that_joins_gets_nothing_that_another_still_holds() {
    let budget = Budget::new(100, 0);
    let first = budget.join();
    let all = first.reserve(100).expect("it is alone");
    let second = budget.join();
    assert!(second.reserve(1).is_none(), "its guarantee comes with what the first gives back");
    drop(all);
    assert!(second.reserve(25).is_some());
}

#[test]
fn what_one_keeps_for_requests_under_way_costs_another_nothing() {
    let budget = Budget::new(100, 20);
    let greedy = budget.join();
    let modest = budget.join();
    let mut held = [greedy.reserve(20).expect("its own share"), greedy.reserve(40).expect("the pool")];
    assert!(held[0].grow(5) && held[1].grow(10), "into the spike");
    assert_eq!(budget.used(), 75);
    assert!(modest.reserve(20).is_some());
}

/// Members join, charge, grow, shrink and leave on several threads, while another thread reads and resizes.
#[test]
fn under_concurrency_the_limit_holds_and_everything_comes_back() {
    const LIMIT: u64 = 10_000;
    let budget = Budget::new(LIMIT, LIMIT / 5);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let budget = &budget;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut member = budget.join();
                let mut held = Vec::new();
                for _ in 0..20_000 {
                    match random.u8(..8) {
                        0 => member = budget.join(),
                        1..4 => held.extend(member.reserve(random.u64(..LIMIT / 4))),
                        4 => drop(held.last_mut().map(|charge: &mut Charge| charge.grow(random.u64(..100)))),
                        5 => held.iter_mut().for_each(|charge| charge.shrink_to(random.u64(..LIMIT / 4))),
                        _ => drop(held.pop()),
                    }
                    let used = budget.used();
                    assert!(used <= LIMIT, "{used}");
                }
            });
        }
        let budget = &budget;
        scope.spawn(move || (0..5_000).for_each(|n| budget.resize(LIMIT - n % 2, n % LIMIT)));
    });
    assert_eq!(budget.used(), 0);
    assert!(budget.limits().members.is_empty());
    assert!(budget.join().reserve(budget.limit() - budget.limits().spike).is_some());
}
