use super::*;
use crate::auth::static_tokens::StaticTokens;

fn authentication(anonymous: AnonymousAccess) -> UnionAuthenticator {
    let tokens =
        StaticTokens::parse("f", "admintoken,admin,admin-uid,system:masters", Arc::new(["api".to_owned()])).unwrap();
    UnionAuthenticator { tokens: vec![Arc::new(tokens)], anonymous }
}

fn user(anonymous: AnonymousAccess, header: Option<&str>, path: &str) -> Result<String, u16> {
    let credentials = RequestCredentials { certificate: None, authorization: header.map(RedactedText), path };
    let user =
        futures_util::FutureExt::now_or_never(authentication(anonymous).authenticate_request(&credentials)).unwrap();
    user.map(|user| user.name.to_string()).map_err(|status| status.code)
}

#[test]
fn a_known_token_is_its_user() {
    for header in ["Bearer admintoken", "bearer admintoken", " Bearer admintoken  "] {
        assert_eq!(user(AnonymousAccess::Off, Some(header), "/api"), Ok("admin".into()), "{header}");
    }
}

#[test]
fn an_unknown_token_is_refused_even_where_none_is_needed() {
    assert_eq!(user(AnonymousAccess::On, Some("Bearer wrong"), "/version"), Err(401));
}

#[test]
fn without_credentials_the_setting_decides() {
    let anonymous = Ok("system:anonymous".to_owned());
    assert_eq!(user(AnonymousAccess::On, None, "/api"), anonymous);
    assert_eq!(user(AnonymousAccess::Off, None, "/version"), Err(401));
    assert_eq!(user(AnonymousAccess::default(), None, "/version"), anonymous);
    assert_eq!(user(AnonymousAccess::default(), None, "/api"), Err(401));
    for header in ["Basic abc", "Bearer", "Bearer  admintoken", ""] {
        assert_eq!(user(AnonymousAccess::On, Some(header), "/api"), anonymous, "{header}");
    }
}

#[test]
fn a_certificate_counts_before_a_token() {
    let jane = UserInfo::new("jane", ["devs"]);
    let credentials =
        RequestCredentials { certificate: Some(&jane), authorization: Some(RedactedText("Bearer wrong")), path: "/" };
    let user =
        futures_util::FutureExt::now_or_never(authentication(AnonymousAccess::Off).authenticate_request(&credentials))
            .unwrap()
            .unwrap();
    assert_eq!(user, jane.clone().with_authenticated_group());
    assert!(!format!("{credentials:?}").contains("wrong"));
}

#[test]
fn static_tokens_are_for_the_servers_own_audiences() {
    let token = |audiences: &[String]| {
        let authentication = authentication(AnonymousAccess::Off);
        futures_util::FutureExt::now_or_never(authentication.authenticate_token("admintoken", Some(audiences))).unwrap()
    };
    assert_eq!(*token(&["x".into(), "api".into()]).unwrap().audiences, ["api".to_owned()]);
    assert_eq!(token(&["x".into()]).unwrap_err(), "invalid bearer token");
}
