//! A user in Kubernetes, and the names and groups with a special meaning.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::api::text::{MAX_SUBDOMAIN_BYTES, is_label, is_subdomain};

pub const MASTERS_GROUP: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// The group of all unauthenticated users.
pub const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";
pub const ANONYMOUS_USER: &str = "system:anonymous";
/// The key in [`UserInfo::extra`] with the id of the credential.
pub const CREDENTIAL_ID_KEY: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// Attributes of a user beside name, uid and groups.
pub type UserExtra = BTreeMap<String, Vec<String>>;

/// The user of a request. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: Arc<str>,
    /// Empty if the authenticator provides none.
    pub uid: Arc<str>,
    /// The groups, in the order of messages.
    pub groups: Arc<[Arc<str>]>,
    /// Further attributes, for authorizers and webhooks.
    pub extra: Arc<UserExtra>,
}

impl UserInfo {
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        let groups = groups.into_iter().map(Arc::from).collect();
        Self { name: name.into(), groups, ..Self::default() }
    }

    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS_USER, [UNAUTHENTICATED_GROUP])
    }

    /// The user of a ServiceAccount, without `system:authenticated`.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = service_account_groups(namespace);
        let user = Self::new(&service_account_name(namespace, name), groups.iter().map(String::as_str));
        Self { uid: uid.into(), ..user }
    }

    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        self.uid = uid.into();
        self
    }

    #[must_use]
    pub fn with_extra(mut self, extra: UserExtra) -> Self {
        self.extra = Arc::new(extra);
        self
    }

    /// Adds `system:authenticated`, unless the groups say already whether the user is authenticated.
    #[must_use]
    pub fn with_authenticated_group(mut self) -> Self {
        if &*self.name != ANONYMOUS_USER && !self.is_in(AUTHENTICATED_GROUP) && !self.is_in(UNAUTHENTICATED_GROUP) {
            self.groups = self.groups.iter().cloned().chain([Arc::from(AUTHENTICATED_GROUP)]).collect();
        }
        self
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| &**one == group)
    }

    /// The user as `userInfo` in reviews, without empty fields.
    pub fn to_value(&self) -> Value {
        let mut info = Map::new();
        if !self.name.is_empty() {
            info.insert("username".into(), (&*self.name).into());
        }
        if !self.uid.is_empty() {
            info.insert("uid".into(), (&*self.uid).into());
        }
        if !self.groups.is_empty() {
            info.insert("groups".into(), self.groups.iter().map(|group| Value::from(&**group)).collect());
        }
        if !self.extra.is_empty() {
            let extra: Map<_, _> = self.extra.iter().map(|(key, all)| (key.clone(), all.clone().into())).collect();
            info.insert("extra".into(), extra.into());
        }
        info.into()
    }
}

/// The values of `extra` may come from a credential, so only its keys are shown.
impl fmt::Debug for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extra: Vec<_> = self.extra.keys().collect();
        f.debug_struct("User")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("groups", &self.groups)
            .field("extra", &extra)
            .finish()
    }
}

/// The user name of a ServiceAccount.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of a ServiceAccount, without `system:authenticated`.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    [SERVICE_ACCOUNTS_GROUP.to_owned(), format!("{SERVICE_ACCOUNTS_GROUP}:{namespace}")]
}

/// The namespace and name of the ServiceAccount with this user name, if it is one.
pub fn split_service_account_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = is_label(namespace) && name.len() <= MAX_SUBDOMAIN_BYTES && is_subdomain(name);
    valid.then_some((namespace, name))
}

#[cfg(test)]
mod tests;
