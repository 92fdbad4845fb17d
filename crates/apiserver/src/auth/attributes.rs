//! What a request wants to do, as authorizers see it.

use crate::api::{GroupResource, Status};

use super::User;

/// What a request wants to do. Borrowed, so that deciding about a request allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who is asking.
    pub user: &'a User,
    /// `get`, `list`, `create` and so on; for paths that are no resource, the HTTP method in lower case.
    pub verb: &'a str,
    /// The group, empty for the core one.
    pub group: &'a str,
    /// The version, `*` for all.
    pub version: &'a str,
    /// The plural, empty for paths that are no resource.
    pub resource: &'a str,
    /// `status`, `scale` and so on, or empty.
    pub subresource: &'a str,
    /// Empty for what is in no namespace.
    pub namespace: &'a str,
    /// Empty for requests about no single object. A list or watch whose field selector is `metadata.name=x` is about `x`.
    pub name: &'a str,
    /// The path, for a request that is not about a resource.
    pub path: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    /// A request about a resource; set what else applies.
    pub fn resource(user: &'a User, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        let rest = ("*", "", "", "");
        let (version, subresource, namespace, name) = rest;
        Self { user, verb, group, version, resource, subresource, namespace, name, path: None }
    }

    /// A request about a path that is no resource.
    pub fn path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self { version: "", path: Some(path), ..Self::resource(user, verb, "", "") }
    }

    /// In a namespace.
    #[must_use]
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// About one object.
    #[must_use]
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// About a subresource.
    #[must_use]
    pub fn subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// The refusal of the request, in kube-apiserver's words; `reason` is the authorizers', or empty.
    pub fn forbidden(&self, reason: &str) -> Status {
        let message = self.cannot();
        let why = if reason.is_empty() { message } else { format!("{message}: {reason}") };
        Status::forbidden(&GroupResource::new(self.group, self.resource), self.name, &why)
    }

    fn cannot(&self) -> String {
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

/// The one name that a field selector leaves, as in `metadata.name=x`. A list or watch with it is, for authorizers, about that object.
pub fn selected_name(field_selector: &str) -> Option<&str> {
    let name = field_selector.split(',').find_map(|term| {
        let value = term.strip_prefix("metadata.name")?.strip_prefix('=')?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    // What no object can be called names none; a backslash escapes what no name holds.
    let impossible = name.is_empty() || name == "." || name == ".." || name.contains(['/', '%', '\\', '=']);
    (!impossible).then_some(name)
}

#[cfg(test)]
mod tests;
