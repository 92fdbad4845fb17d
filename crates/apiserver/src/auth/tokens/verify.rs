//! Whose token it is: signature, then audience, then time, then the objects that must still be there.

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::{
    LEEWAY, LONGEST, ServiceAccountTokens,
    claims::{Claims, Header, Kubernetes, Ref},
};
use crate::{
    api::{GroupResource, ObjectKey},
    auth::{
        User,
        authenticate::Identity,
        user::{CREDENTIAL_ID, Extra},
    },
};

/// A token that one of the keys has signed.
pub(super) struct Verified {
    audiences: Vec<String>,
    expires: Option<i64>,
    not_before: Option<i64>,
    issued: Option<i64>,
    user: User,
    account: ObjectKey,
    /// What it is bound to: its kind in messages, where it is, and which one.
    bound: Vec<(&'static str, ObjectKey, String)>,
}

impl ServiceAccountTokens {
    pub(super) fn identity(&self, token: &str, wanted: Option<&[String]>) -> Result<Option<Identity>, String> {
        let Some(verified) = self.verified(token)? else { return Ok(None) };
        let wanted = wanted.unwrap_or(&self.audiences);
        // A token without audiences is an old one, for the server only.
        let own = if verified.audiences.is_empty() { &*self.audiences } else { &verified.audiences };
        let audiences: Arc<[String]> = own.iter().filter(|one| wanted.contains(one)).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            let [own, wanted] = [own, wanted].map(quoted);
            return Err(format!("token audiences {own} is invalid for the target audiences {wanted}"));
        }
        self.check(&verified)?;
        Ok(Some(Identity { user: verified.user.clone(), audiences }))
    }

    /// A token with a good signature. `None` if it is none of ours.
    fn verified(&self, token: &str) -> Result<Option<Arc<Verified>>, String> {
        if token.len() > LONGEST {
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
        let verified = Arc::new(Verified::new(claims));
        self.verified.put(digest, Arc::clone(&verified));
        Ok(Some(verified))
    }

    fn verify_signature(&self, token: &str, header: &Header) -> Result<(), String> {
        let mut keys = self.verifying.iter().filter(|key| header.kid.is_empty() || key.id() == header.kid).peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found".into());
        }
        let bad = || "go-jose/go-jose: error in cryptographic primitive".to_owned();
        let (message, signature) = token.rsplit_once('.').ok_or_else(bad)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| bad())?;
        // Who signs does not choose the algorithm: it belongs to the key.
        let good = keys.any(|key| key.algorithm().name() == header.alg && key.verify(message.as_bytes(), &signature));
        if good && header.crit.is_none() { Ok(()) } else { Err(bad()) }
    }

    fn check(&self, verified: &Verified) -> Result<(), String> {
        let now = (self.clock)();
        let seconds = |time: Timestamp| time.as_second();
        let (earliest, latest) = (seconds(now - LEEWAY), seconds(now + LEEWAY));
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
        verified.bound.iter().try_for_each(|(kind, key, uid)| self.check_bound(kind, key, uid, now))
    }

    fn check_account(&self, Verified { account, user, .. }: &Verified, now: Timestamp) -> Result<(), String> {
        let (namespace, name) = (&account.namespace, &account.name);
        let found = self.objects.identity(account).ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        if found.uid != *user.uid {
            return Err(format!("service account UID ({}) does not match claim ({})", found.uid, user.uid));
        }
        if found.deleted.is_some_and(|deleted| deleted < now - LEEWAY) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        Ok(())
    }

    fn check_bound(&self, kind: &str, key: &ObjectKey, uid: &str, now: Timestamp) -> Result<(), String> {
        let invalidated = || "service account token has been invalidated".to_owned();
        let found = self.objects.identity(key).ok_or_else(invalidated)?;
        if found.uid != uid {
            let found = found.uid;
            let lower = kind.to_ascii_lowercase();
            return Err(format!("{lower} UID ({found}) does not match service account {lower} ref claim ({uid})"));
        }
        if found.deleted.is_some_and(|deleted| deleted < now - LEEWAY) { Err(invalidated()) } else { Ok(()) }
    }
}

impl Verified {
    fn new(claims: Claims) -> Self {
        let Kubernetes { namespace, serviceaccount, pod, secret, node, .. } = &claims.kubernetes;
        let mut bound = Vec::new();
        let refs = [("secret", "secrets", secret), ("pod", "pods", pod)];
        for (kind, resource, object) in refs {
            bound.extend(object.as_ref().map(|Ref { name, uid }| (kind, key(resource, namespace, name), uid.clone())));
        }
        // Of a token that is bound to a pod, the node is only told.
        if let Some(Ref { name, uid }) = node.as_ref().filter(|_| pod.is_none()) {
            bound.push(("node", key("nodes", "", name), uid.clone()));
        }
        let user = User::service_account(namespace, &serviceaccount.name, &serviceaccount.uid);
        Self {
            user: user.with_extra(extra(&claims)).authenticated(),
            account: key("serviceaccounts", namespace, &serviceaccount.name),
            bound,
            expires: claims.exp,
            not_before: claims.nbf,
            issued: claims.iat,
            audiences: claims.aud.0,
        }
    }
}

/// What kube-apiserver tells of a token beside its user.
fn extra(claims: &Claims) -> Extra {
    let prefix = "authentication.kubernetes.io";
    let mut extra = Extra::new();
    let mut put = |key: String, value: &str| {
        if !value.is_empty() {
            extra.insert(key, vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        put(CREDENTIAL_ID.to_owned(), &format!("JTI={}", claims.jti));
    }
    if let Some(Ref { name, uid }) =
        claims.kubernetes.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty())
    {
        put(format!("{prefix}/pod-name"), name);
        put(format!("{prefix}/pod-uid"), uid);
    }
    if let Some(Ref { name, uid }) = claims.kubernetes.node.as_ref().filter(|node| !node.name.is_empty()) {
        put(format!("{prefix}/node-name"), name);
        put(format!("{prefix}/node-uid"), uid);
    }
    extra
}

pub(super) fn key(resource: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", resource), namespace, name)
}

/// The header and claims of a token, before anything is believed.
fn parse(token: &str) -> Option<(Header, Claims)> {
    let mut parts = token.split('.');
    let (header, claims) = (parts.next()?, parts.next()?);
    let (Some(_), None) = (parts.next(), parts.next()) else { return None };
    let decode = |part| URL_SAFE_NO_PAD.decode(part).ok();
    Some((serde_json::from_slice(&decode(header)?).ok()?, serde_json::from_slice(&decode(claims)?).ok()?))
}

/// Whether a text has the form of a token.
#[cfg(feature = "fuzzing")]
pub(crate) fn is_token(text: &str) -> bool {
    parse(text).is_some()
}

/// Texts as Go shows a list of quoted ones.
pub(super) fn quoted(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}
