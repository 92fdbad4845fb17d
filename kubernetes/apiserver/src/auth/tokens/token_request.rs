//! TokenRequest: the subresource `token` of ServiceAccounts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    ServiceAccountTokens,
    claims::{Audiences, ClaimObjectRef, KubernetesClaims, TokenClaims},
    verify::object_key,
};
use crate::{
    api::{
        GroupKind, GroupResource, GroupVersion, StatusError, field,
        meta::{MetaAccessor, child_mut, meta_mut},
    },
    auth::user::service_account_name,
};

/// The default lifetime of a token.
const DEFAULT_EXPIRATION_SECONDS: i64 = 3600;
/// The shortest lifetime of a token.
const MIN_EXPIRATION_SECONDS: i64 = 600;
/// The longest lifetime of a token.
const MAX_EXPIRATION_SECONDS: i64 = 1 << 32;
/// The lifetime that the kubelet requests for pods that do not reload tokens.
const LEGACY_POD_EXPIRATION_SECONDS: i64 = 3607;
const EXTENDED_EXPIRATION_SECONDS: i64 = 365 * 24 * 3600;

/// The response to a TokenRequest. `Debug` redacts the token.
#[derive(Clone, PartialEq)]
pub struct IssuedToken {
    /// The TokenRequest with its status.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// The objects that a token is bound to.
#[derive(Default)]
struct BoundObjects {
    pod: Option<ClaimObjectRef>,
    secret: Option<ClaimObjectRef>,
    node: Option<ClaimObjectRef>,
}

impl ServiceAccountTokens {
    /// Defaults and validates a TokenRequest for a ServiceAccount. Validating admission follows, then
    /// [`Self::issue`].
    ///
    /// `request` is decoded, defaulted and has its managedFields.
    pub fn prepare(&self, namespace: &str, name: &str, request: &mut Value) -> Result<(), StatusError> {
        check_names(namespace, name, request)?;
        let account_key = object_key("serviceaccounts", namespace, name);
        let account =
            self.objects.get(&account_key).ok_or_else(|| StatusError::not_found(&account_key.resource, name))?;
        let asked = request.uid();
        let uid = account.uid();
        if !asked.is_empty() && asked != uid {
            let why =
                format!("the UID in the token request ({asked}) does not match the UID of the service account ({uid})");
            return Err(StatusError::conflict(
                &GroupResource::new("authentication.k8s.io", "TokenRequest"),
                name,
                &why,
            ));
        }
        let created = format_time((self.clock)());
        if let Some(meta) = meta_mut(request) {
            for (field, value) in
                [("name", name), ("namespace", namespace), ("uid", uid), ("creationTimestamp", &created)]
            {
                meta.insert(field.to_owned(), value.into());
            }
        }
        self.set_defaults(request);
        let errors = duration_errors(expiration_seconds(request));
        if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid(&token_request_kind(), "", &errors)) }
    }

    /// Issues the token of a prepared request.
    pub fn issue(&self, namespace: &str, name: &str, mut request: Value) -> Result<IssuedToken, StatusError> {
        let bound = self.resolve_bound_object(namespace, name, &request)?;
        let mut warnings = Vec::new();
        let mut asked = expiration_seconds(&request);
        if let Some(longest) = self.settings.longest.filter(|longest| asked > *longest) {
            warnings.push(format!("requested expiration of {asked} seconds shortened to {longest} seconds"));
            asked = longest;
            set_field(&mut request, "spec", "expirationSeconds", longest);
        }
        let now = (self.clock)();
        let account = ClaimObjectRef { name: name.to_owned(), uid: request.uid().to_owned() };
        let claims = self.build_claims(namespace, account, bound, audiences(&request), asked, now);
        let failed = || StatusError::internal("failed to generate token");
        let token = self.sign(&claims).ok_or_else(failed)?;
        let expires = format_time(now + SignedDuration::from_secs(asked));
        set_field(&mut request, "status", "token", token);
        set_field(&mut request, "status", "expirationTimestamp", expires);
        Ok(IssuedToken { object: request, warnings })
    }

    fn set_defaults(&self, request: &mut Value) {
        let Some(members) = request.as_object_mut() else { return };
        members.remove("status");
        let Some(spec) = child_mut(members, "spec") else { return };
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds".to_owned(), DEFAULT_EXPIRATION_SECONDS.into());
        }
        if spec.get("audiences").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("audiences".to_owned(), json!(*self.audiences));
        }
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }

    /// The object that the token is to be bound to, if it exists and has the requested uid.
    fn resolve_bound_object(
        &self,
        namespace: &str,
        account: &str,
        request: &Value,
    ) -> Result<BoundObjects, StatusError> {
        let reference = request.pointer("/spec/boundObjectRef").filter(|reference| reference.is_object());
        let Some(reference) = reference else { return Ok(BoundObjects::default()) };
        let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        let version = GroupVersion::parse(text("apiVersion"));
        let group = version.as_ref().map_or("", |version| &version.group);
        let mut bound = BoundObjects::default();
        let uid = match (group, text("kind")) {
            ("", "Pod") => self.bind_pod(namespace, account, name, &mut bound)?,
            ("", "Secret") => self.bind_object("secrets", namespace, name, &mut bound.secret)?.uid().to_owned(),
            ("", "Node") => self.bind_object("nodes", "", name, &mut bound.node)?.uid().to_owned(),
            (_, other) => {
                let version = version.as_ref().map_or("", |version| &version.version);
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={other}");
                return Err(StatusError::bad_request(message));
            }
        };
        let asked = text("uid");
        if asked.is_empty() || asked == uid {
            return Ok(bound);
        }
        let why = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        Err(StatusError::conflict(&GroupResource::new("", text("kind")), name, &why))
    }

    fn bind_pod(
        &self,
        namespace: &str,
        account: &str,
        name: &str,
        bound: &mut BoundObjects,
    ) -> Result<String, StatusError> {
        let pod = self.bind_object("pods", namespace, name, &mut bound.pod)?;
        let spec =
            |field| pod.pointer("/spec").and_then(|spec| spec.get(field)).and_then(Value::as_str).unwrap_or_default();
        // The default ServiceAccount of a pod.
        let runs_as = Some(spec("serviceAccountName")).filter(|name| !name.is_empty()).unwrap_or("default");
        if runs_as != account {
            let message = format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
            );
            return Err(StatusError::bad_request(message));
        }
        let node = spec("nodeName");
        if !node.is_empty() && self.bind_object("nodes", "", node, &mut bound.node).is_err() {
            // The name alone still identifies the node that the pod is bound to.
            bound.node = Some(ClaimObjectRef { name: node.to_owned(), uid: String::new() });
        }
        Ok(pod.uid().to_owned())
    }

    fn bind_object(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        into: &mut Option<ClaimObjectRef>,
    ) -> Result<Value, StatusError> {
        let key = object_key(resource, namespace, name);
        let object = self.objects.get(&key).ok_or_else(|| StatusError::not_found(&key.resource, name))?;
        *into = Some(ClaimObjectRef { name: name.to_owned(), uid: object.uid().to_owned() });
        Ok(object)
    }

    fn build_claims(
        &self,
        namespace: &str,
        account: ClaimObjectRef,
        bound: BoundObjects,
        audiences: Vec<String>,
        asked: i64,
        now: Timestamp,
    ) -> TokenClaims {
        let now = now.as_second();
        let extend = self.settings.extend
            && bound.pod.is_some()
            && asked == LEGACY_POD_EXPIRATION_SECONDS
            && audiences.iter().all(|audience| self.audiences.contains(audience));
        let lasts = if extend { EXTENDED_EXPIRATION_SECONDS } else { asked };
        TokenClaims {
            aud: Audiences(audiences),
            exp: Some(now.saturating_add(lasts)),
            iat: Some(now),
            iss: self.settings.issuers.first().cloned().unwrap_or_default(),
            jti: uuid(),
            nbf: Some(now),
            sub: service_account_name(namespace, &account.name),
            kubernetes: KubernetesClaims {
                namespace: namespace.to_owned(),
                node: bound.node,
                pod: bound.pod,
                secret: bound.secret,
                serviceaccount: account,
                warnafter: extend.then(|| now.saturating_add(asked)),
            },
        }
    }

    pub(super) fn sign(&self, claims: &TokenClaims) -> Option<String> {
        let public = self.signing.verifying_key();
        let header = json!({"alg": public.algorithm().name(), "kid": public.id()});
        let [header, claims] = [serde_json::to_vec(&header).ok()?, serde_json::to_vec(claims).ok()?];
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.signing.sign(message.as_bytes())?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("object", &"***").field("warnings", &self.warnings).finish()
    }
}

fn check_names(namespace: &str, name: &str, request: &Value) -> Result<(), StatusError> {
    for (field, what, given, wanted) in [
        ("metadata.name", "name", request.name(), name),
        ("metadata.namespace", "namespace", request.namespace(), namespace),
    ] {
        if !given.is_empty() && given != wanted {
            let detail = format!("must match the service account {what} if specified");
            let error = field::FieldError::invalid(field, &given.into(), &detail);
            return Err(StatusError::invalid(&token_request_kind(), name, &[error]));
        }
    }
    Ok(())
}

fn duration_errors(seconds: i64) -> field::FieldErrors {
    let error = |detail| vec![field::FieldError::invalid("spec.expirationSeconds", &seconds.into(), detail)];
    match seconds {
        ..MIN_EXPIRATION_SECONDS => error("may not specify a duration less than 10 minutes"),
        MIN_EXPIRATION_SECONDS..=MAX_EXPIRATION_SECONDS => Vec::new(),
        _ => error("may not specify a duration larger than 2^32 seconds"),
    }
}

fn token_request_kind() -> GroupKind {
    GroupKind::new("authentication.k8s.io", "TokenRequest")
}

fn expiration_seconds(request: &Value) -> i64 {
    request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_EXPIRATION_SECONDS)
}

fn audiences(request: &Value) -> Vec<String> {
    let all = request.pointer("/spec/audiences").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|audience| audience.as_str().map(str::to_owned)).collect()
}

fn set_field(request: &mut Value, part: &str, field: &str, value: impl Into<Value>) {
    if let Some(members) = request.as_object_mut().and_then(|request| child_mut(request, part)) {
        Map::insert(members, field.to_owned(), value.into());
    }
}

pub(in crate::auth) fn format_time(time: Timestamp) -> String {
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
