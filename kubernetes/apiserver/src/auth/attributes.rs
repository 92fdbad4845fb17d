//! The attributes of a request that authorizers decide on.

use crate::api::{GroupResource, StatusError};

use super::UserInfo;

/// The attributes of a request. They are borrowed, so that a decision allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationAttributes<'a> {
    pub user: &'a UserInfo,
    /// `get`, `list`, `create` and so on; for non-resource paths, the HTTP method in lower case.
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    /// `*` for all versions.
    pub version: &'a str,
    /// The plural; empty for non-resource paths.
    pub resource: &'a str,
    /// `status`, `scale` and so on, or empty.
    pub subresource: &'a str,
    /// Empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Empty for requests that are not about a single object. For a list or watch with the field selector
    /// `metadata.name=x` it is `x`.
    pub name: &'a str,
    /// The path of a non-resource request.
    pub path: Option<&'a str>,
}

impl<'a> AuthorizationAttributes<'a> {
    /// The attributes of a resource request; further ones are set separately.
    pub fn for_resource(user: &'a UserInfo, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        let rest = ("*", "", "", "");
        let (version, subresource, namespace, name) = rest;
        Self { user, verb, group, version, resource, subresource, namespace, name, path: None }
    }

    pub fn for_path(user: &'a UserInfo, verb: &'a str, path: &'a str) -> Self {
        Self { version: "", path: Some(path), ..Self::for_resource(user, verb, "", "") }
    }

    #[must_use]
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    #[must_use]
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    #[must_use]
    pub fn with_subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// The refusal of the request, with kube-apiserver's message; `reason` is that of the authorizers, or
    /// empty.
    pub fn forbidden_status(&self, reason: &str) -> StatusError {
        let message = self.denial_message();
        let why = if reason.is_empty() { message } else { format!("{message}: {reason}") };
        StatusError::forbidden(&GroupResource::new(self.group, self.resource), self.name, &why)
    }

    fn denial_message(&self) -> String {
        let Self { user, verb, group, namespace, .. } = self;
        let name = &user.name;
        if let Some(path) = self.path {
            return format!("User {name:?} cannot {verb} path {path:?}");
        }
        let separator = if self.subresource.is_empty() { "" } else { "/" };
        let resource = format!("{}{separator}{}", self.resource, self.subresource);
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        format!("User {name:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
    }
}

/// The name in a field selector `metadata.name=x`. For authorizers, such a list or watch is about that object.
pub fn selected_name(field_selector: &str) -> Option<&str> {
    let name = field_selector.split(',').find_map(|term| {
        let value = term.strip_prefix("metadata.name")?.strip_prefix('=')?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    // Impossible names select no object; a backslash escapes characters that no name contains.
    let impossible = name.is_empty() || name == "." || name == ".." || name.contains(['/', '%', '\\', '=']);
    (!impossible).then_some(name)
}

#[cfg(test)]
mod tests;
