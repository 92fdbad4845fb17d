//! Impersonation: the `Impersonate-…` headers.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::api::StatusError;

use super::{
    AuthorizationAttributes, UnionAuthorizer, UserInfo,
    user::{
        ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP, UserExtra, service_account_groups,
        split_service_account_name,
    },
};

const USER_HEADER: &str = "impersonate-user";
const GROUP_HEADER: &str = "impersonate-group";
const UID_HEADER: &str = "impersonate-uid";
const EXTRA_HEADER_PREFIX: &str = "impersonate-extra-";
const API_GROUP: &str = "authentication.k8s.io";

/// One attribute to impersonate.
#[derive(Debug, PartialEq, Eq)]
enum ImpersonationRequest<'a> {
    ServiceAccount { namespace: &'a str, name: &'a str },
    User(&'a str),
    Group(&'a str),
    Extra { key: String, value: &'a str },
    Uid(&'a str),
}

/// The impersonated user; `None` if the request has no such headers. Refused unless the requester may
/// impersonate each attribute.
pub async fn impersonate(
    asking: &UserInfo,
    headers: &HeaderMap,
    authorizers: &UnionAuthorizer,
) -> Result<Option<UserInfo>, StatusError> {
    let wishes = impersonation_requests(headers)?;
    if wishes.is_empty() {
        return Ok(None);
    }
    for wish in &wishes {
        authorizers.check(&wish.attributes(asking)).await?;
    }
    Ok(Some(impersonated_user(&wishes)))
}

/// Whether a header is one of those of impersonation, which are not passed on.
pub fn is_impersonation_header(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == USER_HEADER || name == GROUP_HEADER || name == UID_HEADER || name.starts_with(EXTRA_HEADER_PREFIX)
}

fn impersonation_requests(headers: &HeaderMap) -> Result<Vec<ImpersonationRequest<'_>>, StatusError> {
    let mut wishes = Vec::new();
    if !headers.keys().any(is_impersonation_header) {
        return Ok(wishes);
    }
    let user = headers.get(USER_HEADER).map(text).transpose()?.filter(|user| !user.is_empty());
    wishes.extend(user.map(|user| match split_service_account_name(user) {
        Some((namespace, name)) => ImpersonationRequest::ServiceAccount { namespace, name },
        None => ImpersonationRequest::User(user),
    }));
    for group in headers.get_all(GROUP_HEADER) {
        wishes.push(ImpersonationRequest::Group(text(group)?));
    }
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA_HEADER_PREFIX) {
            wishes.push(ImpersonationRequest::Extra { key: unescape_key(key).into_owned(), value: text(value)? });
        }
    }
    let uid = headers.get(UID_HEADER).map(text).transpose()?.filter(|uid| !uid.is_empty());
    wishes.extend(uid.map(ImpersonationRequest::Uid));
    if user.is_none() && !wishes.is_empty() {
        let all: Vec<String> = wishes.iter().map(ImpersonationRequest::object_reference).collect();
        return Err(StatusError::bad_request(format!("requested [{}] without impersonating a user", all.join(" "))));
    }
    Ok(wishes)
}

fn impersonated_user(wishes: &[ImpersonationRequest<'_>]) -> UserInfo {
    let named: Vec<_> = wishes.iter().filter_map(ImpersonationRequest::group).collect();
    let mut name = Cow::Borrowed("");
    let mut uid = "";
    let mut extra = UserExtra::new();
    let mut groups: Vec<Cow<'_, str>> = named.iter().copied().map(Cow::Borrowed).collect();
    for wish in wishes {
        match wish {
            ImpersonationRequest::ServiceAccount { namespace, name: account } => {
                name = super::user::service_account_name(namespace, account).into();
                if named.is_empty() {
                    groups.extend(service_account_groups(namespace).map(Cow::Owned));
                }
            }
            ImpersonationRequest::User(user) => name = (*user).into(),
            ImpersonationRequest::Uid(wanted) => uid = wanted,
            ImpersonationRequest::Extra { key, value } => {
                extra.entry(key.clone()).or_default().push((*value).to_owned())
            }
            ImpersonationRequest::Group(_) => {}
        }
    }
    let missing = if name == ANONYMOUS_USER { UNAUTHENTICATED_GROUP } else { AUTHENTICATED_GROUP };
    // Impersonating `system:unauthenticated` does not add `system:authenticated`.
    if !groups.iter().any(|group| group == missing || group == UNAUTHENTICATED_GROUP) {
        groups.push(missing.into());
    }
    UserInfo::new(&name, groups.iter().map(|group| &**group)).with_uid(uid).with_extra(extra)
}

impl ImpersonationRequest<'_> {
    /// The attributes for which the requester needs authorization.
    fn attributes<'a>(&'a self, asking: &'a UserInfo) -> AuthorizationAttributes<'a> {
        let about = |group, resource| AuthorizationAttributes::for_resource(asking, "impersonate", group, resource);
        match self {
            Self::ServiceAccount { namespace, name } => about("", "serviceaccounts").namespace(namespace).name(name),
            Self::User(name) => about("", "users").name(name),
            Self::Group(name) => about("", "groups").name(name),
            Self::Extra { key, value } => about(API_GROUP, "userextras").with_subresource(key).name(value),
            Self::Uid(uid) => about(API_GROUP, "uids").name(uid),
        }
    }

    fn group(&self) -> Option<&str> {
        match self {
            Self::Group(name) => Some(name),
            _ => None,
        }
    }

    /// An ObjectReference in kube-apiserver's format: kind, namespace, name, uid, apiVersion, resourceVersion
    /// and fieldPath.
    fn object_reference(&self) -> String {
        match self {
            Self::ServiceAccount { namespace, name } => format!("{{ServiceAccount {namespace} {name}    }}"),
            Self::User(name) => format!("{{User  {name}    }}"),
            Self::Group(name) => format!("{{Group  {name}    }}"),
            Self::Extra { key, value } => format!("{{UserExtra  {value}  {API_GROUP}/v1  {key}}}"),
            Self::Uid(uid) => format!("{{UID  {uid}  {API_GROUP}/v1  }}"),
        }
    }
}

fn text(value: &HeaderValue) -> Result<&str, StatusError> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| StatusError::bad_request("an impersonation header is not UTF-8"))
}

/// A percent-decoded key; unchanged if an escape is malformed.
fn unescape_key(key: &str) -> Cow<'_, str> {
    if !key.contains('%') {
        return key.into();
    }
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = rest.split_at_checked(2).and_then(|(code, after)| {
            rest = after;
            let code =
                std::str::from_utf8(code).ok().filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            u8::from_str_radix(code, 16).ok()
        });
        let Some(code) = code else { return key.into() };
        bytes.push(code);
    }
    String::from_utf8(bytes).map_or(key.into(), Cow::Owned)
}

#[cfg(test)]
mod tests;
