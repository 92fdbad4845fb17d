use futures_util::FutureExt;

use super::*;
use crate::auth::User;

struct Always(Decision);

impl Authorizer for Always {
    fn authorize<'a>(&'a self, _attributes: &'a Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

fn decide(user: &User, all: impl IntoIterator<Item = Decision>) -> Decision {
    let all = all.into_iter().map(|decision| Arc::new(Always(decision)) as Arc<dyn Authorizer>);
    Authorizers::new(all.collect()).decide(&Attributes::path(user, "get", "/x")).now_or_never().unwrap()
}

#[test]
fn the_first_opinion_decides() {
    let jane = User::new("jane", []);
    let (allow, deny, none) = (Decision::allow("a"), Decision::deny("d"), Decision::no_opinion(""));
    assert_eq!(decide(&jane, [none.clone(), allow.clone(), deny.clone()]), allow);
    assert_eq!(decide(&jane, [deny.clone(), allow]), deny);
    assert_eq!(decide(&jane, []), none);
}

#[test]
fn without_an_opinion_all_reasons_are_told() {
    let jane = User::new("jane", []);
    let reasons = ["one", "", "two"].map(Decision::no_opinion);
    assert_eq!(decide(&jane, reasons), Decision::no_opinion("one\ntwo"));
}

#[test]
fn masters_are_not_even_asked_about() {
    assert!(decide(&User::new("admin", [MASTERS]), [Decision::deny("")]).is_allowed());
}
