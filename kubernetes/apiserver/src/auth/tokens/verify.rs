//! Authenticates tokens: signature, then audience, then time, then the existence of the bound objects.

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::{
    CLOCK_LEEWAY, MAX_TOKEN_BYTES, ServiceAccountTokens,
    claims::{ClaimObjectRef, KubernetesClaims, TokenClaims, TokenHeader},
};
use crate::{
    api::{GroupResource, ObjectKey},
    auth::{
        UserInfo,
        authenticate::TokenIdentity,
        user::{CREDENTIAL_ID_KEY, UserExtra},
    },
};

/// A token with a verified signature.
pub(super) struct VerifiedToken {
    audiences: Vec<String>,
    expires: Option<i64>,
    not_before: Option<i64>,
    issued: Option<i64>,
    user: UserInfo,
    account: ObjectKey,
    /// The bound objects: kind for messages, key, and uid.
    bound: Vec<(&'static str, ObjectKey, String)>,
}

impl ServiceAccountTokens {
    pub(super) fn authenticate_token(
        &self,
        token: &str,
        wanted: Option<&[String]>,
    ) -> Result<Option<TokenIdentity>, String> {
        let Some(verified) = self.verify_token(token)? else { return Ok(None) };
        let wanted = wanted.unwrap_or(&self.audiences);
        // A token without audiences is an old one, for the server only.
        let own = if verified.audiences.is_empty() { &*self.audiences } else { &verified.audiences };
        let audiences: Arc<[String]> = own.iter().filter(|one| wanted.contains(one)).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            let [own, wanted] = [own, wanted].map(quote_list);
            return Err(format!("token audiences {own} is invalid for the target audiences {wanted}"));
        }
        self.check_claims(&verified)?;
        Ok(Some(TokenIdentity { user: verified.user.clone(), audiences }))
    }

    /// Verifies the signature of a token. `None` if the token is not of this server.
    fn verify_token(&self, token: &str) -> Result<Option<Arc<VerifiedToken>>, String> {
        if token.len() > MAX_TOKEN_BYTES {
            return Ok(None);
        }
        let digest = digest::digest(&digest::SHA256, token.as_bytes()).as_ref().try_into().unwrap_or_default();
        if let Some(known) = self.verified.get(&digest) {
            return Ok(Some(known));
        }
        let Some((header, claims)) = parse(token).filter(|(_, claims)| self.settings.issuers.contains(&claims.iss))
        else {
            return Ok(None);
        };
        self.verify_signature(token, &header)?;
        let verified = Arc::new(VerifiedToken::new(claims));
        self.verified.put(digest, Arc::clone(&verified));
        Ok(Some(verified))
    }

    fn verify_signature(&self, token: &str, header: &TokenHeader) -> Result<(), String> {
        let mut keys = self.verifying.iter().filter(|key| header.kid.is_empty() || key.id() == header.kid).peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found".into());
        }
        let bad = || "go-jose/go-jose: error in cryptographic primitive".to_owned();
        let (message, signature) = token.rsplit_once('.').ok_or_else(bad)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| bad())?;
        // The signer does not choose the algorithm: it belongs to the key.
        let good = keys.any(|key| key.algorithm().name() == header.alg && key.verify(message.as_bytes(), &signature));
        if good && header.crit.is_none() { Ok(()) } else { Err(bad()) }
    }

    fn check_claims(&self, verified: &VerifiedToken) -> Result<(), String> {
        let now = (self.clock)();
        let seconds = |time: Timestamp| time.as_second();
        let earliest = seconds(now - CLOCK_LEEWAY);
        let latest = seconds(now + CLOCK_LEEWAY);
        if verified.not_before.is_some_and(|time| latest < time) {
            return Err("service account token is not valid yet".into());
        }
        if verified.expires.is_some_and(|time| earliest > time) {
            return Err("service account token has expired".into());
        }
        if verified.issued.is_some_and(|time| latest < time) {
            return Err("service account token is issued in the future".into());
        }
        self.check_account(verified, now)?;
        verified.bound.iter().try_for_each(|(kind, key, uid)| self.check_bound_object(kind, key, uid, now))
    }

    fn check_account(&self, VerifiedToken { account, user, .. }: &VerifiedToken, now: Timestamp) -> Result<(), String> {
        let namespace = &account.namespace;
        let name = &account.name;
        let found = self.objects.identity(account).ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        if found.uid != *user.uid {
            return Err(format!("service account UID ({}) does not match claim ({})", found.uid, user.uid));
        }
        if found.deleted.is_some_and(|deleted| deleted < now - CLOCK_LEEWAY) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        Ok(())
    }

    fn check_bound_object(&self, kind: &str, key: &ObjectKey, uid: &str, now: Timestamp) -> Result<(), String> {
        let invalidated = || "service account token has been invalidated".to_owned();
        let found = self.objects.identity(key).ok_or_else(invalidated)?;
        if found.uid != uid {
            let found = found.uid;
            let lower = kind.to_ascii_lowercase();
            return Err(format!("{lower} UID ({found}) does not match service account {lower} ref claim ({uid})"));
        }
        if found.deleted.is_some_and(|deleted| deleted < now - CLOCK_LEEWAY) { Err(invalidated()) } else { Ok(()) }
    }
}

impl VerifiedToken {
    fn new(claims: TokenClaims) -> Self {
        let KubernetesClaims { namespace, serviceaccount, pod, secret, node, .. } = &claims.kubernetes;
        let mut bound = Vec::new();
        let refs = [("secret", "secrets", secret), ("pod", "pods", pod)];
        for (kind, resource, object) in refs {
            bound.extend(
                object
                    .as_ref()
                    .map(|ClaimObjectRef { name, uid }| (kind, object_key(resource, namespace, name), uid.clone())),
            );
        }
        // The node of a pod-bound token is only informational.
        if let Some(ClaimObjectRef { name, uid }) = node.as_ref().filter(|_| pod.is_none()) {
            bound.push(("node", object_key("nodes", "", name), uid.clone()));
        }
        let user = UserInfo::service_account(namespace, &serviceaccount.name, &serviceaccount.uid);
        Self {
            user: user.with_extra(extra(&claims)).with_authenticated_group(),
            account: object_key("serviceaccounts", namespace, &serviceaccount.name),
            bound,
            expires: claims.exp,
            not_before: claims.nbf,
            issued: claims.iat,
            audiences: claims.aud.0,
        }
    }
}

/// The `extra` that kube-apiserver sets from a token.
fn extra(claims: &TokenClaims) -> UserExtra {
    let prefix = "authentication.kubernetes.io";
    let mut extra = UserExtra::new();
    let mut put = |key: String, value: &str| {
        if !value.is_empty() {
            extra.insert(key, vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        put(CREDENTIAL_ID_KEY.to_owned(), &format!("JTI={}", claims.jti));
    }
    if let Some(ClaimObjectRef { name, uid }) =
        claims.kubernetes.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty())
    {
        put(format!("{prefix}/pod-name"), name);
        put(format!("{prefix}/pod-uid"), uid);
    }
    if let Some(ClaimObjectRef { name, uid }) = claims.kubernetes.node.as_ref().filter(|node| !node.name.is_empty()) {
        put(format!("{prefix}/node-name"), name);
        put(format!("{prefix}/node-uid"), uid);
    }
    extra
}

pub(super) fn object_key(resource: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", resource), namespace, name)
}

/// The unverified header and claims of a token.
fn parse(token: &str) -> Option<(TokenHeader, TokenClaims)> {
    let mut parts = token.split('.');
    let header = parts.next()?;
    let claims = parts.next()?;
    let (Some(_), None) = (parts.next(), parts.next()) else { return None };
    let decode = |part| URL_SAFE_NO_PAD.decode(part).ok();
    Some((serde_json::from_slice(&decode(header)?).ok()?, serde_json::from_slice(&decode(claims)?).ok()?))
}

/// Whether a text is a well-formed token.
#[cfg(feature = "fuzzing")]
pub(crate) fn is_token(text: &str) -> bool {
    parse(text).is_some()
}

/// A list of quoted strings in Go's format.
pub(super) fn quote_list(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}
