use serde_json::json;

use super::*;

#[test]
fn a_service_account_is_a_user_in_two_groups() {
    let user = UserInfo::service_account("test-ns", "sa", "u1").with_authenticated_group();
    let groups = ["system:serviceaccounts", "system:serviceaccounts:test-ns", "system:authenticated"];
    let info = json!({"username": "system:serviceaccount:test-ns:sa", "uid": "u1", "groups": groups});
    assert_eq!(user.to_value(), info);
}

#[test]
fn only_names_of_service_accounts_are_split() {
    assert_eq!(split_service_account_name("system:serviceaccount:a:b.c"), Some(("a", "b.c")));
    for other in [
        "jane",
        "system:serviceaccount:a",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount:A:b",
        "system:serviceaccount::b",
    ] {
        assert_eq!(split_service_account_name(other), None, "{other}");
    }
}

#[test]
fn authenticated_is_added_once_and_never_to_the_unauthenticated() {
    assert_eq!(UserInfo::new("jane", ["devs"]).with_authenticated_group().groups.len(), 2);
    assert_eq!(UserInfo::new("jane", [AUTHENTICATED_GROUP]).with_authenticated_group().groups.len(), 1);
    assert_eq!(UserInfo::anonymous().with_authenticated_group(), UserInfo::anonymous());
}

#[test]
fn debug_shows_no_values_of_extra() {
    let extra = UserExtra::from([("key".to_owned(), vec!["hidden".to_owned()])]);
    assert!(!format!("{:?}", UserInfo::new("jane", []).with_extra(extra)).contains("hidden"));
}
