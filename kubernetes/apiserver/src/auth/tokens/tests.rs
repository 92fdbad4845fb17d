use std::{
    collections::HashMap,
    sync::{Mutex, atomic::AtomicI64, atomic::Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{claims::TokenClaims, *};
use crate::{
    api::{ObjectKey, StatusError},
    auth::user::CREDENTIAL_ID_KEY,
};

const NOW: i64 = 1_750_000_000;

#[derive(Default)]
struct Store(Mutex<HashMap<(String, String, String), Value>>);

impl ObjectGetter for Store {
    fn get(&self, key: &ObjectKey) -> Option<Value> {
        let key = (key.resource.resource.to_string(), key.namespace.to_string(), key.name.to_string());
        self.0.lock().unwrap().get(&key).cloned()
    }
}

/// A server with a ServiceAccount `sa` in `test-ns`, a pod of it, a secret and a node.
struct World {
    store: Arc<Store>,
    clock: Arc<AtomicI64>,
    tokens: ServiceAccountTokens,
}

impl World {
    fn new(settings: TokenSettings, key: SigningKey) -> Self {
        let store = Arc::new(Store::default());
        let clock = Arc::new(AtomicI64::new(NOW));
        let time = Arc::clone(&clock);
        let now: TokenClock = Arc::new(move || Timestamp::from_second(time.load(Ordering::Relaxed)).unwrap());
        let tokens = ServiceAccountTokens::new(settings, key, Arc::clone(&store) as Arc<dyn ObjectGetter>, now);
        let world = Self { store, clock, tokens };
        world.put("serviceaccounts", "test-ns", "sa", "sa-uid");
        world.put("secrets", "test-ns", "s", "s-uid");
        world.put("nodes", "", "worker", "node-uid");
        let pod = json!({"metadata": {"uid": "p-uid"}, "spec": {"serviceAccountName": "sa", "nodeName": "worker"}});
        world.store.0.lock().unwrap().insert(("pods".into(), "test-ns".into(), "p".into()), pod);
        world
    }

    fn put(&self, resource: &str, namespace: &str, name: &str, uid: &str) {
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.store.0.lock().unwrap().insert(key, json!({"metadata": {"uid": uid}}));
    }

    fn remove(&self, resource: &str, namespace: &str, name: &str) {
        self.store.0.lock().unwrap().remove(&(resource.to_owned(), namespace.to_owned(), name.to_owned()));
    }

    fn pass(&self, seconds: i64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    fn request(&self, name: &str, spec: Value) -> Result<IssuedToken, StatusError> {
        let mut request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec});
        self.tokens.prepare("test-ns", name, &mut request)?;
        self.tokens.issue("test-ns", name, request)
    }

    fn token(&self, spec: Value) -> String {
        self.request("sa", spec).unwrap().object["status"]["token"].as_str().unwrap().to_owned()
    }

    fn bound_to(&self, kind: &str, name: &str) -> String {
        self.token(json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}}))
    }

    fn error(&self, token: &str) -> String {
        self.tokens.authenticate_token(token, None).unwrap_err()
    }
}

fn world() -> World {
    World::new(TokenSettings::default(), SigningKey::generate().unwrap())
}

fn part(token: &str, number: usize) -> Value {
    let part = token.split('.').nth(number).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn with_part(token: &str, number: usize, value: &Value) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts[number] = URL_SAFE_NO_PAD.encode(value.to_string());
    parts.join(".")
}

#[test]
fn a_request_is_answered_as_recorded() {
    let issued = world().request("sa", json!({"expirationSeconds": 3600})).unwrap();
    let token = issued.object["status"]["token"].clone();
    let answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "sa", "namespace": "test-ns", "uid": "sa-uid", "creationTimestamp": "2025-06-15T15:06:40Z"},
        "spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, "boundObjectRef": null},
        "status": {"token": token, "expirationTimestamp": "2025-06-15T16:06:40Z"},
    });
    assert_eq!(issued.object, answer);
    assert!(!format!("{issued:?}").contains(token.as_str().unwrap()));
}

#[test]
fn a_request_without_a_duration_gets_an_hour_and_the_audiences_it_named() {
    let spec = &world().request("sa", json!({"audiences": ["other"]})).unwrap().object["spec"];
    assert_eq!(*spec, json!({"audiences": ["other"], "expirationSeconds": 3600, "boundObjectRef": null}));
}

#[test]
fn bad_requests_are_refused_in_kube_apiservers_words() {
    let refused = |name: &str, spec: Value| {
        let status = world().request(name, spec).unwrap_err();
        (status.code, status.message)
    };
    let short = r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"#;
    assert_eq!(refused("sa", json!({"expirationSeconds": 10})), (422, short.into()));
    assert_eq!(refused("sa", json!({"expirationSeconds": 1_i64 << 33})).0, 422);
    assert_eq!(refused("nobody", json!({})), (404, r#"serviceaccounts "nobody" not found"#.into()));
    let bind = |kind: &str, version: &str, name: &str, uid: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, "uid": uid}});
    assert_eq!(refused("sa", bind("Pod", "v1", "none", "")), (404, r#"pods "none" not found"#.into()));
    let other = "cannot bind token to object of type apps/v1, Kind=Deployment";
    assert_eq!(refused("sa", bind("Deployment", "apps/v1", "d", "")), (400, other.into()));
    let conflict = r#"Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated"#;
    assert_eq!(refused("sa", bind("Secret", "v1", "s", "x")), (409, conflict.into()));
}

#[test]
fn names_in_the_body_must_be_those_of_the_path() {
    let mut request = json!({"metadata": {"name": "other"}, "spec": {}});
    let status = world().tokens.prepare("test-ns", "sa", &mut request).unwrap_err();
    let message = r#"TokenRequest.authentication.k8s.io "sa" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified"#;
    assert_eq!(status.message, message);
}

#[test]
fn claims_are_those_of_kube_apiserver() {
    let world = world();
    let token = world.bound_to("Pod", "p");
    let mut claims = part(&token, 1);
    let id = claims["jti"].take();
    assert_eq!(id.as_str().unwrap().len(), 36);
    let expected = json!({
        "aud": ["https://kubernetes.default.svc"], "exp": NOW + 3600, "iat": NOW, "nbf": NOW, "jti": null,
        "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:test-ns:sa",
        "kubernetes.io": {
            "namespace": "test-ns", "serviceaccount": {"name": "sa", "uid": "sa-uid"},
            "pod": {"name": "p", "uid": "p-uid"}, "node": {"name": "worker", "uid": "node-uid"},
        },
    });
    assert_eq!(claims, expected);
    assert_eq!(part(&token, 0), json!({"alg": "ES256", "kid": world.tokens.signing.verifying_key().id()}));
    let user = world.tokens.authenticate_token(&token, None).unwrap().unwrap().user;
    let prefix = "authentication.kubernetes.io";
    let extra = json!({
        CREDENTIAL_ID_KEY: [format!("JTI={}", id.as_str().unwrap())],
        format!("{prefix}/pod-name"): ["p"], format!("{prefix}/pod-uid"): ["p-uid"],
        format!("{prefix}/node-name"): ["worker"], format!("{prefix}/node-uid"): ["node-uid"],
    });
    assert_eq!(user.to_value()["extra"], extra);
}

#[test]
fn a_token_is_its_account() {
    let world = world();
    let identity = world.tokens.authenticate_token(&world.token(json!({})), None).unwrap().unwrap();
    assert_eq!((&*identity.user.name, &*identity.user.uid), ("system:serviceaccount:test-ns:sa", "sa-uid"));
    assert_eq!(*identity.audiences, [DEFAULT_ISSUER.to_owned()]);
}

#[test]
fn a_token_ends_with_its_account() {
    let world = world();
    let token = world.token(json!({}));
    assert!(world.tokens.authenticate_token(&token, None).unwrap().is_some());
    world.remove("serviceaccounts", "test-ns", "sa");
    assert_eq!(world.error(&token), r#"serviceaccounts "sa" not found"#);
    world.put("serviceaccounts", "test-ns", "sa", "another");
    assert_eq!(world.error(&token), "service account UID (another) does not match claim (sa-uid)");
    let deleted = json!({"metadata": {"uid": "sa-uid", "deletionTimestamp": "2020-01-01T00:00:00Z"}});
    world.store.0.lock().unwrap().insert(("serviceaccounts".into(), "test-ns".into(), "sa".into()), deleted);
    assert_eq!(world.error(&token), "service account test-ns/sa has been deleted");
}

#[test]
fn a_token_ends_with_what_it_is_bound_to() {
    for (kind, resource, namespace, name) in
        [("Pod", "pods", "test-ns", "p"), ("Secret", "secrets", "test-ns", "s"), ("Node", "nodes", "", "worker")]
    {
        let world = world();
        let token = world.bound_to(kind, name);
        assert!(world.tokens.authenticate_token(&token, None).unwrap().is_some(), "{kind}");
        world.put(resource, namespace, name, "another");
        assert!(world.error(&token).contains("UID (another) does not match service account"), "{kind}");
        world.remove(resource, namespace, name);
        assert_eq!(world.error(&token), "service account token has been invalidated", "{kind}");
    }
}

#[test]
fn a_token_ends_with_its_time() {
    let world = world();
    let token = world.token(json!({"expirationSeconds": 600}));
    world.pass(660);
    assert!(world.tokens.authenticate_token(&token, None).unwrap().is_some());
    world.pass(1);
    assert_eq!(world.error(&token), "service account token has expired");
    world.pass(-10_000);
    assert_eq!(world.error(&token), "service account token is not valid yet");
}

#[test]
fn tokens_of_pods_are_extended_and_long_ones_shortened() {
    let pod = json!({"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}});
    let claims = part(&world().token(pod.clone()), 1);
    assert_eq!(claims["exp"], NOW + 365 * 24 * 3600);
    assert_eq!(claims["kubernetes.io"]["warnafter"], NOW + 3607);
    let settings = TokenSettings { longest: Some(3600), extend: false, ..TokenSettings::default() };
    let issued = World::new(settings, SigningKey::generate().unwrap()).request("sa", pod).unwrap();
    assert_eq!(issued.warnings, ["requested expiration of 3607 seconds shortened to 3600 seconds"]);
    assert_eq!(issued.object["spec"]["expirationSeconds"], 3600);
}

#[test]
fn a_pod_that_names_no_account_runs_as_the_default_one() {
    let world = world();
    world.put("serviceaccounts", "test-ns", "default", "default-uid");
    world.put("pods", "test-ns", "plain", "plain-uid");
    let spec = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "plain"}});
    world.request("default", spec.clone()).unwrap();
    let refused = world.request("sa", spec).unwrap_err().message;
    assert!(refused.contains("pod running with different serviceaccount name"), "{refused}");
}

#[test]
fn a_token_is_only_for_its_audiences() {
    let world = world();
    let other = world.token(json!({"audiences": ["other", "third"]}));
    let message =
        r#"token audiences ["other" "third"] is invalid for the target audiences ["https://kubernetes.default.svc"]"#;
    assert_eq!(world.error(&other), message);
    let identity = world.tokens.authenticate_token(&other, Some(&["x".into(), "third".into()])).unwrap().unwrap();
    assert_eq!(*identity.audiences, ["third".to_owned()]);
}

#[test]
fn what_is_no_token_of_ours_is_left_to_others() {
    let world = world();
    let token = world.token(json!({}));
    let mut claims = part(&token, 1);
    claims["iss"] = "somebody".into();
    for other in [
        "",
        "a.b",
        "a.b.c.d",
        "admintoken",
        &with_part(&token, 1, &claims),
        &format!("{token}.x"),
        &"x".repeat(1 << 20),
    ] {
        assert_eq!(world.tokens.authenticate_token(other, None), Ok(None), "{other:.20}");
    }
}

#[test]
fn tampered_tokens_are_refused() {
    let world = world();
    let token = world.token(json!({}));
    let bad = "go-jose/go-jose: error in cryptographic primitive";
    let mut claims = part(&token, 1);
    claims["kubernetes.io"]["serviceaccount"]["name"] = "admin".into();
    assert_eq!(world.error(&with_part(&token, 1, &claims)), bad);
    let kid = part(&token, 0)["kid"].clone();
    for alg in ["none", "HS256", "RS256", "es256"] {
        assert_eq!(world.error(&with_part(&token, 0, &json!({"alg": alg, "kid": kid}))), bad, "{alg}");
    }
    assert_eq!(world.error(&with_part(&token, 0, &json!({"alg": "ES256", "kid": kid, "crit": ["b64"]}))), bad);
    assert_eq!(
        world.error(&with_part(&token, 0, &json!({"alg": "ES256", "kid": "x"}))),
        "invalid signature, no keys found"
    );
    let (unsigned, _) = token.rsplit_once('.').unwrap();
    assert_eq!(world.error(&format!("{unsigned}.")), bad);
    // A signature with the public key as a shared secret, or with another key of the same kind.
    let other = World::new(TokenSettings::default(), SigningKey::generate().unwrap());
    let claims: TokenClaims = serde_json::from_value(part(&token, 1)).unwrap();
    let forged = other.tokens.sign(&claims).unwrap();
    assert_eq!(world.error(&forged), "invalid signature, no keys found");
    let forged = with_part(&forged, 0, &json!({"alg": "ES256"}));
    assert_eq!(world.error(&forged), bad);
}

#[test]
fn other_keys_can_be_trusted_and_keys_can_be_rsa() {
    let rsa = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let public = VerifyingKey::from_pem(&rsa.public_key_pem()).unwrap();
    let rsa = SigningKey::from_pem(&rsa.serialize_pem()).unwrap();
    assert_eq!(public.id(), rsa.verifying_key().id());
    let first = World::new(TokenSettings::default(), rsa);
    let second = world();
    let token = first.token(json!({}));
    assert_eq!(part(&token, 0)["alg"], "RS256");
    assert!(first.tokens.authenticate_token(&token, None).unwrap().is_some());
    assert_eq!(second.error(&token), "invalid signature, no keys found");
    let World { tokens, .. } = second;
    let tokens = tokens.with_trusted_keys([public]);
    assert!(tokens.authenticate_token(&token, None).unwrap().is_some());
    let jwks = tokens.jwks();
    assert_eq!((&jwks["keys"][0]["kty"], &jwks["keys"][1]["kty"]), (&json!("EC"), &json!("RSA")));
    assert_eq!(jwks["keys"][0]["x"].as_str().unwrap().len(), 43);
    assert_eq!(jwks["keys"][1]["e"], "AQAB");
    assert_eq!(jwks["keys"][1]["n"].as_str().unwrap().len(), 342);
    let algorithms = &tokens.openid_configuration()["id_token_signing_alg_values_supported"];
    assert_eq!(*algorithms, json!(["ES256", "RS256"]));
}

#[test]
fn a_key_lives_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sa.key");
    let first = SigningKey::load_or_generate(&path).unwrap();
    assert_eq!(first.verifying_key().id(), SigningKey::load_or_generate(&path).unwrap().verifying_key().id());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(SigningKey::from_pem("nothing"), Err(keys::KeyError::Pem)));
}

proptest! {
    /// A token with any byte changed is unknown or an error.
    #[test]
    fn no_change_goes_unnoticed(at in 0_usize..2000, byte in 33_u8..127) {
        let world = world();
        let token = world.token(json!({}));
        let at = at % token.len();
        let mut bytes = token.clone().into_bytes();
        bytes[at] = byte;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assume!(changed != token);
        prop_assert!(!matches!(world.tokens.authenticate_token(&changed, None), Ok(Some(_))));
    }
}
