//! Tokens, certificates, and responses of webhooks.

use std::sync::Arc;

use kubewake_apiserver::{
    auth::{static_tokens::StaticTokens, x509},
    fuzzing::{decision, parse_token, read_admission_answer, token_identity},
};
use rustls::pki_types::CertificateDer;
use serde_json::Value;

use crate::memory::bounded;

/// A token is parsed within a multiple of its length; so is a file of static tokens.
pub(super) fn jwt(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    bounded("a token", text.len(), 128, 64 << 10, || parse_token(text));
    let tokens = bounded("static tokens", text.len(), 256, 64 << 10, || {
        StaticTokens::parse("tokens.csv", text, Arc::from(["api".to_owned()]))
    });
    if let Ok(tokens) = tokens {
        assert!(tokens.user("").is_none(), "no token is nobody");
    }
}

/// A certificate yields a user with a nonempty name, or none.
pub(super) fn certificate(data: &[u8]) {
    let certificate = CertificateDer::from(data);
    let user = bounded("a certificate", data.len(), 64, 64 << 10, || x509::user_from_certificate(&certificate));
    assert!(user.is_none_or(|user| !user.name.is_empty()));
}

/// Responses of webhooks are parsed or refused.
pub(super) fn webhook_answers(data: &[u8]) {
    let _ = bounded("an admission answer", data.len(), 256, 64 << 10, || read_admission_answer(data));
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let allowed = value["status"]["allowed"] == Value::Bool(true);
    assert!(allowed || !decision(&value).is_allowed(), "only an explicit yes is one");
}

/// Only an explicit "authenticated" is accepted, for requested audiences, and the user is in no group that the
/// webhook did not name.
pub(super) fn token_review(data: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<Value>(data) else { return };
    let status = &answer["status"];
    let named = |list: &Value, text: &str| list.as_array().is_some_and(|list| list.iter().any(|item| item == text));
    let audiences = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let own = audiences(&["api", "https://kubernetes.default.svc"]);
    for wanted in [audiences(&["api"]), audiences(&["vault", "api"]), audiences(&["vault"])] {
        let identity = bounded("a review", data.len(), 256, 64 << 10, || token_identity(&answer, &wanted, &own));
        let Ok(Some(identity)) = identity else { continue };
        assert_eq!(status["authenticated"], Value::Bool(true), "only an explicit yes is one");
        assert!(!identity.audiences.is_empty() && identity.audiences.iter().all(|one| wanted.contains(one)));
        let said = status["audiences"].as_array().is_some_and(|list| list.iter().any(Value::is_string));
        let is_said = |one: &String| if said { named(&status["audiences"], one) } else { own.contains(one) };
        assert!(identity.audiences.iter().all(is_said), "{:?}", identity.audiences);
        assert!(identity.user.groups.iter().all(|group| named(&status["user"]["groups"], group)));
        assert_eq!(*identity.user.name, *status["user"]["username"].as_str().unwrap_or_default());
    }
}
