use super::*;

#[test]
fn a_lone_member_has_the_whole_limit() {
    let budget = Budget::new(100, 0);
    let member = budget.join();
    let charge = member.admit(100).expect("fits");
    assert!(member.admit(1).is_none());
    drop(charge);
    assert!(member.admit(100).is_some());
}

#[test]
fn a_member_that_takes_all_it_can_leaves_the_others_their_guarantee() {
    let budget = Budget::new(100, 0);
    let (greedy, modest) = (budget.join(), budget.join());
    let mut held = Vec::new();
    while let Some(charge) = greedy.admit(5) {
        held.push(charge);
    }
    assert_eq!(budget.used(), 75, "its own quarter and the pool");
    assert!(modest.admit(25).is_some());
    assert!(modest.admit(26).is_none());
}

#[test]
fn the_spike_is_kept_for_requests_under_way() {
    let budget = Budget::new(100, 20);
    let member = budget.join();
    let mut charge = member.admit(80).expect("fits under the soft limit");
    assert!(member.admit(1).is_none());
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
    assert!(stays.admit(80).is_none());
    drop(leaves);
    assert!(stays.admit(80).is_some());
}

#[test]
fn resizing_keeps_what_is_held() {
    let budget = Budget::new(100, 0);
    let member = budget.join();
    let charge = member.admit(90).expect("fits");
    budget.resize(50, 0);
    assert!(member.admit(1).is_none());
    drop(charge);
    assert!(member.admit(50).is_some());
    assert_eq!(budget.used(), 0);
}
