//! `Impersonate-…` headers: acting as somebody else, if one may.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::api::Status;

use super::{
    Attributes, Authorizers, User,
    user::{ANONYMOUS, AUTHENTICATED, Extra, UNAUTHENTICATED, account_groups, split_account_name},
};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const API_GROUP: &str = "authentication.k8s.io";

/// One thing that somebody wants to be or have.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Account { namespace: &'a str, name: &'a str },
    User(&'a str),
    Group(&'a str),
    Extra { key: String, value: &'a str },
    Uid(&'a str),
}

/// The user to act as; `None` if the request asks for none. Refused unless the one who asks may impersonate each part.
pub async fn user(asking: &User, headers: &HeaderMap, authorizers: &Authorizers) -> Result<Option<User>, Status> {
    let wishes = wishes(headers)?;
    if wishes.is_empty() {
        return Ok(None);
    }
    for wish in &wishes {
        authorizers.check(&wish.attributes(asking)).await?;
    }
    Ok(Some(become_user(&wishes)))
}

/// Whether a header is one of those that say whom to act as. They go no further than this server.
pub fn is_header(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == USER || name == GROUP || name == UID || name.starts_with(EXTRA)
}

fn wishes(headers: &HeaderMap) -> Result<Vec<Wish<'_>>, Status> {
    let mut wishes = Vec::new();
    if !headers.keys().any(is_header) {
        return Ok(wishes);
    }
    let user = headers.get(USER).map(text).transpose()?.filter(|user| !user.is_empty());
    wishes.extend(user.map(|user| match split_account_name(user) {
        Some((namespace, name)) => Wish::Account { namespace, name },
        None => Wish::User(user),
    }));
    for group in headers.get_all(GROUP) {
        wishes.push(Wish::Group(text(group)?));
    }
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            wishes.push(Wish::Extra { key: unescaped(key).into_owned(), value: text(value)? });
        }
    }
    let uid = headers.get(UID).map(text).transpose()?.filter(|uid| !uid.is_empty());
    wishes.extend(uid.map(Wish::Uid));
    if user.is_none() && !wishes.is_empty() {
        let all: Vec<String> = wishes.iter().map(Wish::reference).collect();
        return Err(Status::bad_request(format!("requested [{}] without impersonating a user", all.join(" "))));
    }
    Ok(wishes)
}

fn become_user(wishes: &[Wish<'_>]) -> User {
    let named: Vec<_> = wishes.iter().filter_map(Wish::group).collect();
    let (mut name, mut uid, mut extra) = (Cow::Borrowed(""), "", Extra::new());
    let mut groups: Vec<Cow<'_, str>> = named.iter().copied().map(Cow::Borrowed).collect();
    for wish in wishes {
        match wish {
            Wish::Account { namespace, name: account } => {
                name = super::user::account_name(namespace, account).into();
                if named.is_empty() {
                    groups.extend(account_groups(namespace).map(Cow::Owned));
                }
            }
            Wish::User(user) => name = (*user).into(),
            Wish::Uid(wanted) => uid = wanted,
            Wish::Extra { key, value } => extra.entry(key.clone()).or_default().push((*value).to_owned()),
            Wish::Group(_) => {}
        }
    }
    let missing = if name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    // Who names `system:unauthenticated` is not made authenticated.
    if !groups.iter().any(|group| group == missing || group == UNAUTHENTICATED) {
        groups.push(missing.into());
    }
    User::new(&name, groups.iter().map(|group| &**group)).with_uid(uid).with_extra(extra)
}

impl Wish<'_> {
    /// What the one who asks must be allowed.
    fn attributes<'a>(&'a self, asking: &'a User) -> Attributes<'a> {
        let about = |group, resource| Attributes::resource(asking, "impersonate", group, resource);
        match self {
            Self::Account { namespace, name } => about("", "serviceaccounts").namespace(namespace).name(name),
            Self::User(name) => about("", "users").name(name),
            Self::Group(name) => about("", "groups").name(name),
            Self::Extra { key, value } => about(API_GROUP, "userextras").subresource(key).name(value),
            Self::Uid(uid) => about(API_GROUP, "uids").name(uid),
        }
    }

    fn group(&self) -> Option<&str> {
        match self {
            Self::Group(name) => Some(name),
            _ => None,
        }
    }

    /// As kube-apiserver shows an ObjectReference: kind, namespace, name, uid, apiVersion, resourceVersion and fieldPath.
    fn reference(&self) -> String {
        match self {
            Self::Account { namespace, name } => format!("{{ServiceAccount {namespace} {name}    }}"),
            Self::User(name) => format!("{{User  {name}    }}"),
            Self::Group(name) => format!("{{Group  {name}    }}"),
            Self::Extra { key, value } => format!("{{UserExtra  {value}  {API_GROUP}/v1  {key}}}"),
            Self::Uid(uid) => format!("{{UID  {uid}  {API_GROUP}/v1  }}"),
        }
    }
}

fn text(value: &HeaderValue) -> Result<&str, Status> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| Status::bad_request("an impersonation header is not UTF-8"))
}

/// A key with its `%xx`; as it stands if they are malformed.
fn unescaped(key: &str) -> Cow<'_, str> {
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
