//! A user as Kubernetes knows one, and the names and groups that mean something to it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::api::text::{SUBDOMAIN_MAX, is_label, is_subdomain};

/// May do everything.
pub const MASTERS: &str = "system:masters";
/// Everyone with credentials is in it.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everyone without credentials is in it.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The key in [`User::extra`] that says by which credential somebody came.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// What is known of a user beside name, uid and groups.
pub type Extra = BTreeMap<String, Vec<String>>;

/// Who is asking. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// Empty where the way of authentication knows none.
    pub uid: Arc<str>,
    /// In the order in which they are shown.
    pub groups: Arc<[Arc<str>]>,
    /// What else is known, for authorizers and webhooks.
    pub extra: Arc<Extra>,
}

impl User {
    /// A user with groups.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        let groups = groups.into_iter().map(Arc::from).collect();
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// The user without credentials.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// A ServiceAccount as a user, without `system:authenticated`.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = account_groups(namespace);
        let user = Self::new(&account_name(namespace, name), groups.iter().map(String::as_str));
        Self { uid: uid.into(), ..user }
    }

    /// With a uid.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        self.uid = uid.into();
        self
    }

    /// With what else is known.
    #[must_use]
    pub fn with_extra(mut self, extra: Extra) -> Self {
        self.extra = Arc::new(extra);
        self
    }

    /// With `system:authenticated`, unless the groups already say whether the user is authenticated.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if &*self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups = self.groups.iter().cloned().chain([Arc::from(AUTHENTICATED)]).collect();
        }
        self
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| &**one == group)
    }

    /// As `userInfo` in reviews: without what is empty.
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
impl fmt::Debug for User {
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

/// A ServiceAccount's name as a user.
pub fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that a ServiceAccount is in, without `system:authenticated`.
pub fn account_groups(namespace: &str) -> [String; 2] {
    [ACCOUNTS_GROUP.to_owned(), format!("{ACCOUNTS_GROUP}:{namespace}")]
}

/// The namespace and name of a ServiceAccount, if the user's name is that of one.
pub fn split_account_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = is_label(namespace) && name.len() <= SUBDOMAIN_MAX && is_subdomain(name);
    valid.then_some((namespace, name))
}

#[cfg(test)]
mod tests;
