use futures_util::FutureExt;

use super::*;
use crate::auth::UserInfo;

struct Always(AuthorizationDecision);

impl Authorizer for Always {
    fn authorize<'a>(&'a self, _attributes: &'a AuthorizationAttributes<'a>) -> BoxFuture<'a, AuthorizationDecision> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

fn decide(user: &UserInfo, all: impl IntoIterator<Item = AuthorizationDecision>) -> AuthorizationDecision {
    let all = all.into_iter().map(|decision| Arc::new(Always(decision)) as Arc<dyn Authorizer>);
    UnionAuthorizer::new(all.collect())
        .decide(&AuthorizationAttributes::for_path(user, "get", "/x"))
        .now_or_never()
        .unwrap()
}

#[test]
fn the_first_opinion_decides() {
    let jane = UserInfo::new("jane", []);
    let (allow, deny, none) =
        (AuthorizationDecision::allow("a"), AuthorizationDecision::deny("d"), AuthorizationDecision::no_opinion(""));
    assert_eq!(decide(&jane, [none.clone(), allow.clone(), deny.clone()]), allow);
    assert_eq!(decide(&jane, [deny.clone(), allow]), deny);
    assert_eq!(decide(&jane, []), none);
}

#[test]
fn without_an_opinion_all_reasons_are_told() {
    let jane = UserInfo::new("jane", []);
    let reasons = ["one", "", "two"].map(AuthorizationDecision::no_opinion);
    assert_eq!(decide(&jane, reasons), AuthorizationDecision::no_opinion("one\ntwo"));
}

#[test]
fn masters_are_not_even_asked_about() {
    assert!(decide(&UserInfo::new("admin", [MASTERS_GROUP]), [AuthorizationDecision::deny("")]).is_allowed());
}
