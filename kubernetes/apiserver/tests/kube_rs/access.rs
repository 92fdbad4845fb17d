//! Authentication and authorization: certificates, tokens of ServiceAccounts, roles and bindings.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest},
    certificates::v1::CertificateSigningRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::support::{World, config_map, named, refused, until};

async fn allow(world: &World, subject: serde_json::Value) {
    let role: Role = serde_json::from_value(json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] }],
    }))
    .unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "readers" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [subject],
    }))
    .unwrap();
    let params = PostParams::default();
    Api::default_namespaced(world.client.clone()).create(&params, &role).await.unwrap();
    Api::default_namespaced(world.client.clone()).create(&params, &binding).await.unwrap();
}

/// Reads are refused, then allowed by a binding; writes stay refused.
async fn is_let_in_by_a_binding(world: &World, client: Client, subject: serde_json::Value) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let refusal = refused(maps.list(&ListParams::default()).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (403, "Forbidden"));
    assert!(refusal.message.contains("cannot list resource \"configmaps\""), "{}", refusal.message);
    allow(world, subject).await;
    // Roles are followed by a watch, as in kube-apiserver.
    until(|| async { maps.list(&ListParams::default()).await.ok() }).await;
    assert_eq!(refused(maps.create(&PostParams::default(), &config_map("a", "1")).await).code, 403);
}

#[tokio::test]
async fn a_certificate_names_a_user_and_groups() {
    let world = World::new().await;
    let client = world.server.client_as("ann", &["gardeners"]).unwrap();
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("ann"));
    assert_eq!(user.groups.unwrap(), ["gardeners", "system:authenticated"]);
    let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardeners" });
    is_let_in_by_a_binding(&world, client, subject).await;
}

#[tokio::test]
async fn a_service_account_is_let_in_with_its_token() {
    let world = World::new().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(world.client.clone());
    let account = ServiceAccount { metadata: named("robot"), ..ServiceAccount::default() };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request: TokenRequest = serde_json::from_value(json!({ "metadata": {}, "spec": { "audiences": [] } })).unwrap();
    let issued = accounts.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    let client = world.server.client_with_token(&issued.status.unwrap().token).unwrap();
    is_let_in_by_a_binding(
        &world,
        client,
        json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" }),
    )
    .await;
}

#[tokio::test]
async fn nobody_is_let_in_without_a_good_token() {
    let world = World::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.server.client_with_token("guess").unwrap());
    let refusal = refused(maps.list(&ListParams::default()).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (401, "Unauthorized"));
}

#[tokio::test]
async fn a_request_for_a_certificate_names_who_asks_and_is_approved_by_whoever_may() {
    let world = World::new().await;
    let rules = json!([
        { "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
          "verbs": ["create", "get", "update", "patch"] },
        { "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["example.com/*"], "verbs": ["approve"] },
    ]);
    let role: ClusterRole = serde_json::from_value(json!({ "metadata": { "name": "clerk" }, "rules": rules })).unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "clerks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clerk" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann" }],
    }))
    .unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &role).await.unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &binding).await.unwrap();
    let api: Api<CertificateSigningRequest> = Api::all(world.server.client_as("ann", &["gardeners"]).unwrap());
    for (name, signer) in [("mine", "example.com/signer"), ("other", "example.org/signer")] {
        let request: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "request": "eA==", "signerName": signer, "usages": ["client auth"], "username": "the-queen" },
        }))
        .unwrap();
        let made = until(|| async { api.create(&PostParams::default(), &request).await.ok() }).await;
        assert_eq!(made.spec.username.as_deref(), Some("ann"));
        assert_eq!(made.spec.groups.unwrap(), ["gardeners", "system:authenticated"]);
    }
    let approval = json!({ "status": { "conditions": [{ "type": "Approved", "status": "True", "reason": "Fine" }] } });
    let approve = |name: &'static str| {
        let api = &api;
        let patch = Patch::Merge(&approval);
        async move { api.patch_subresource("approval", name, &PatchParams::default(), &patch).await }
    };
    let approved = approve("mine").await.unwrap();
    assert_eq!(approved.status.unwrap().conditions.unwrap()[0].type_, "Approved");
    let refusal = refused(approve("other").await);
    assert!(refusal.code == 403 && refusal.message.contains("user not permitted to approve"), "{refusal:?}");
}

#[tokio::test]
async fn whoever_has_a_token_can_have_the_key_that_signed_it() {
    let world = World::new().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(world.client.clone());
    let account = ServiceAccount { metadata: named("robot"), ..ServiceAccount::default() };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request: TokenRequest = serde_json::from_value(json!({ "metadata": {}, "spec": { "audiences": [] } })).unwrap();
    let issued = accounts.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    let token = issued.status.unwrap().token;
    let client = world.server.client_with_token(&token).unwrap();
    let get = |path: &'static str| {
        let client = client.clone();
        async move { client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await.ok() }
    };
    let document = until(|| get("/.well-known/openid-configuration")).await;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert!(document["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"), "{document}");
    let keys: serde_json::Value = serde_json::from_str(&until(|| get("/openid/v1/jwks")).await).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let point = |name: &str| bytes(keys["keys"][0][name].as_str().unwrap());
    let key = [vec![4], point("x"), point("y")].concat();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    key.verify(signed.as_bytes(), &bytes(signature)).unwrap();
}
