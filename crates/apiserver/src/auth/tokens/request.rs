//! TokenRequest: the subresource `token` of ServiceAccounts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    ServiceAccountTokens,
    claims::{Audiences, Claims, Kubernetes, Ref},
    verify::key,
};
use crate::{
    api::{
        GroupKind, GroupResource, GroupVersion, Status, field,
        meta::{Meta, child_mut, meta_mut},
    },
    auth::user::account_name,
};

/// If nobody says how long a token is to be good for.
const DEFAULT_SECONDS: i64 = 3600;
/// No token is good for less.
const SHORTEST_SECONDS: i64 = 600;
/// No token is good for more.
const LONGEST_SECONDS: i64 = 1 << 32;
/// What the kubelet asks for in the name of pods that do not know that tokens expire.
const POD_SECONDS: i64 = 3607;
/// What it then gets.
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// What a TokenRequest is answered with. `Debug` shows no token.
#[derive(Clone, PartialEq)]
pub struct Issued {
    /// The TokenRequest with its status.
    pub object: Value,
    /// What to tell the client besides.
    pub warnings: Vec<String>,
}

/// What a token is bound to.
#[derive(Default)]
struct Bound {
    pod: Option<Ref>,
    secret: Option<Ref>,
    node: Option<Ref>,
}

impl ServiceAccountTokens {
    /// Fills in and checks a TokenRequest for a ServiceAccount. Validating admission comes after it, then [`Self::issue`].
    ///
    /// `request` is decoded, defaulted and has its managedFields.
    pub fn prepare(&self, namespace: &str, name: &str, request: &mut Value) -> Result<(), Status> {
        names_match(namespace, name, request)?;
        let account_key = key("serviceaccounts", namespace, name);
        let account = self.objects.get(&account_key).ok_or_else(|| Status::not_found(&account_key.resource, name))?;
        let (asked, uid) = (request.uid(), account.uid());
        if !asked.is_empty() && asked != uid {
            let why =
                format!("the UID in the token request ({asked}) does not match the UID of the service account ({uid})");
            return Err(Status::conflict(&GroupResource::new("authentication.k8s.io", "TokenRequest"), name, &why));
        }
        let created = shown((self.clock)());
        if let Some(meta) = meta_mut(request) {
            for (field, value) in
                [("name", name), ("namespace", namespace), ("uid", uid), ("creationTimestamp", &created)]
            {
                meta.insert(field.to_owned(), value.into());
            }
        }
        self.fill_in(request);
        let errors = duration_errors(seconds(request));
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&kind(), "", &errors)) }
    }

    /// Makes the token that a prepared request asks for.
    pub fn issue(&self, namespace: &str, name: &str, mut request: Value) -> Result<Issued, Status> {
        let bound = self.bound(namespace, name, &request)?;
        let mut warnings = Vec::new();
        let mut asked = seconds(&request);
        if let Some(longest) = self.settings.longest.filter(|longest| asked > *longest) {
            warnings.push(format!("requested expiration of {asked} seconds shortened to {longest} seconds"));
            asked = longest;
            put(&mut request, "spec", "expirationSeconds", longest);
        }
        let now = (self.clock)();
        let account = Ref { name: name.to_owned(), uid: request.uid().to_owned() };
        let claims = self.claims(namespace, account, bound, audiences(&request), asked, now);
        let failed = || Status::internal("failed to generate token");
        let token = self.sign(&claims).ok_or_else(failed)?;
        let expires = shown(now + SignedDuration::from_secs(asked));
        put(&mut request, "status", "token", token);
        put(&mut request, "status", "expirationTimestamp", expires);
        Ok(Issued { object: request, warnings })
    }

    fn fill_in(&self, request: &mut Value) {
        let Some(members) = request.as_object_mut() else { return };
        members.remove("status");
        let Some(spec) = child_mut(members, "spec") else { return };
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds".to_owned(), DEFAULT_SECONDS.into());
        }
        if spec.get("audiences").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("audiences".to_owned(), json!(*self.audiences));
        }
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }

    /// The object that the token is to be bound to, if it is there and is the one that is meant.
    fn bound(&self, namespace: &str, account: &str, request: &Value) -> Result<Bound, Status> {
        let reference = request.pointer("/spec/boundObjectRef").filter(|reference| reference.is_object());
        let Some(reference) = reference else { return Ok(Bound::default()) };
        let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, version) = (text("name"), GroupVersion::parse(text("apiVersion")));
        let group = version.as_ref().map_or("", |version| &version.group);
        let mut bound = Bound::default();
        let uid = match (group, text("kind")) {
            ("", "Pod") => self.pod(namespace, account, name, &mut bound)?,
            ("", "Secret") => self.found("secrets", namespace, name, &mut bound.secret)?.uid().to_owned(),
            ("", "Node") => self.found("nodes", "", name, &mut bound.node)?.uid().to_owned(),
            (_, other) => {
                let version = version.as_ref().map_or("", |version| &version.version);
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={other}");
                return Err(Status::bad_request(message));
            }
        };
        let asked = text("uid");
        if asked.is_empty() || asked == uid {
            return Ok(bound);
        }
        let why = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        Err(Status::conflict(&GroupResource::new("", text("kind")), name, &why))
    }

    fn pod(&self, namespace: &str, account: &str, name: &str, bound: &mut Bound) -> Result<String, Status> {
        let pod = self.found("pods", namespace, name, &mut bound.pod)?;
        let spec =
            |field| pod.pointer("/spec").and_then(|spec| spec.get(field)).and_then(Value::as_str).unwrap_or_default();
        // A pod that names no account runs as this one.
        let runs_as = Some(spec("serviceAccountName")).filter(|name| !name.is_empty()).unwrap_or("default");
        if runs_as != account {
            let message = format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
            );
            return Err(Status::bad_request(message));
        }
        let node = spec("nodeName");
        if !node.is_empty() && self.found("nodes", "", node, &mut bound.node).is_err() {
            // The name alone still says where the pod is to run.
            bound.node = Some(Ref { name: node.to_owned(), uid: String::new() });
        }
        Ok(pod.uid().to_owned())
    }

    fn found(&self, resource: &str, namespace: &str, name: &str, into: &mut Option<Ref>) -> Result<Value, Status> {
        let key = key(resource, namespace, name);
        let object = self.objects.get(&key).ok_or_else(|| Status::not_found(&key.resource, name))?;
        *into = Some(Ref { name: name.to_owned(), uid: object.uid().to_owned() });
        Ok(object)
    }

    fn claims(
        &self,
        namespace: &str,
        account: Ref,
        bound: Bound,
        audiences: Vec<String>,
        asked: i64,
        now: Timestamp,
    ) -> Claims {
        let now = now.as_second();
        let extend = self.settings.extend
            && bound.pod.is_some()
            && asked == POD_SECONDS
            && audiences.iter().all(|audience| self.audiences.contains(audience));
        let lasts = if extend { EXTENDED_SECONDS } else { asked };
        Claims {
            aud: Audiences(audiences),
            exp: Some(now.saturating_add(lasts)),
            iat: Some(now),
            iss: self.settings.issuers.first().cloned().unwrap_or_default(),
            jti: uuid(),
            nbf: Some(now),
            sub: account_name(namespace, &account.name),
            kubernetes: Kubernetes {
                namespace: namespace.to_owned(),
                node: bound.node,
                pod: bound.pod,
                secret: bound.secret,
                serviceaccount: account,
                warnafter: extend.then(|| now.saturating_add(asked)),
            },
        }
    }

    pub(super) fn sign(&self, claims: &Claims) -> Option<String> {
        let public = self.signing.verifying();
        let header = json!({"alg": public.algorithm().name(), "kid": public.id()});
        let [header, claims] = [serde_json::to_vec(&header).ok()?, serde_json::to_vec(claims).ok()?];
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.signing.sign(message.as_bytes())?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("object", &"***").field("warnings", &self.warnings).finish()
    }
}

fn names_match(namespace: &str, name: &str, request: &Value) -> Result<(), Status> {
    for (field, what, given, wanted) in [
        ("metadata.name", "name", request.name(), name),
        ("metadata.namespace", "namespace", request.namespace(), namespace),
    ] {
        if !given.is_empty() && given != wanted {
            let detail = format!("must match the service account {what} if specified");
            let error = field::Error::invalid(field, &given.into(), &detail);
            return Err(Status::invalid(&kind(), name, &[error]));
        }
    }
    Ok(())
}

fn duration_errors(seconds: i64) -> field::Errors {
    let error = |detail| vec![field::Error::invalid("spec.expirationSeconds", &seconds.into(), detail)];
    match seconds {
        ..SHORTEST_SECONDS => error("may not specify a duration less than 10 minutes"),
        SHORTEST_SECONDS..=LONGEST_SECONDS => Vec::new(),
        _ => error("may not specify a duration larger than 2^32 seconds"),
    }
}

fn kind() -> GroupKind {
    GroupKind::new("authentication.k8s.io", "TokenRequest")
}

fn seconds(request: &Value) -> i64 {
    request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS)
}

fn audiences(request: &Value) -> Vec<String> {
    let all = request.pointer("/spec/audiences").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|audience| audience.as_str().map(str::to_owned)).collect()
}

fn put(request: &mut Value, part: &str, field: &str, value: impl Into<Value>) {
    if let Some(members) = request.as_object_mut().and_then(|request| child_mut(request, part)) {
        Map::insert(members, field.to_owned(), value.into());
    }
}

/// As Kubernetes shows times.
pub(in crate::auth) fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A random one, version 4.
fn uuid() -> String {
    let mut bits = u128::from(fastrand::u64(..)) << 64 | u128::from(fastrand::u64(..));
    let mut random = [0; 16];
    if aws_lc_rs::rand::fill(&mut random).is_ok() {
        bits = u128::from_be_bytes(random);
    }
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
