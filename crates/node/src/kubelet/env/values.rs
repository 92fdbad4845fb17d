//! The variables that a container asks for.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, EnvVarSource};

use super::{ConfigError, Inputs, ROOT, Variables, refer};
use crate::kubelet::{
    downward,
    sources::{Content, Kind, Ref},
};

/// Adds what `envFrom` and `env` say, later over earlier. References see what was said before them.
pub(super) async fn add(inputs: &Inputs<'_>, variables: &mut Variables) -> Result<(), ConfigError> {
    for from in inputs.container.env_from.iter().flatten() {
        add_all_of(inputs, from, variables).await?;
    }
    for variable in inputs.container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(from)) => value_from(inputs, variable, from).await?,
            (value, None) => Some(variables.expand(value.as_deref().unwrap_or_default())?),
        };
        if let Some(value) = value {
            set(variables, variable.name.clone(), value)?;
        }
    }
    Ok(())
}

/// The root is the node's business.
fn set(variables: &mut Variables, name: String, value: String) -> Result<(), ConfigError> {
    if name == ROOT { Ok(()) } else { Ok(variables.set(name, value)?) }
}

/// A system that starts processes takes no other names and values.
pub(super) fn check(variables: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    let wrong = |name: &String, why: &str| Err(ConfigError::Variable { name: name.clone(), why: why.to_owned() });
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(name, "a name must not be empty, and must not hold \"=\" or a zero byte");
        }
        if value.contains('\0') {
            return wrong(name, "the value holds a zero byte; mount it as a file");
        }
    }
    Ok(())
}

async fn add_all_of(inputs: &Inputs<'_>, from: &EnvFromSource, variables: &mut Variables) -> Result<(), ConfigError> {
    let (of, optional) = match (&from.config_map_ref, &from.secret_ref) {
        (Some(map), _) => (refer(inputs.pod, Kind::ConfigMap, &map.name), map.optional),
        (None, Some(secret)) => (refer(inputs.pod, Kind::Secret, &secret.name), secret.optional),
        (None, None) => return Ok(()),
    };
    let Some(content) = read(inputs, &of, optional).await? else { return Ok(()) };
    let prefix = from.prefix.as_deref().unwrap_or_default();
    content.iter().try_for_each(|(key, value)| set(variables, format!("{prefix}{key}"), text(&of, key, value)?))
}

/// No value if there is none and need not be one.
async fn value_from(
    inputs: &Inputs<'_>,
    variable: &EnvVar,
    from: &EnvVarSource,
) -> Result<Option<String>, ConfigError> {
    let Inputs { pod, container, node, pod_ip, .. } = *inputs;
    let wrong = |why| ConfigError::Variable { name: variable.name.clone(), why };
    if let Some(field) = &from.field_ref {
        return downward::field(pod, node, Some(pod_ip), &field.field_path).map(Some).map_err(wrong);
    }
    if let Some(resource) = &from.resource_field_ref {
        return downward::resource(pod, node, Some(container), resource).map(Some).map_err(wrong);
    }
    if let Some(map) = &from.config_map_key_ref {
        return one_of(inputs, refer(pod, Kind::ConfigMap, &map.name), &map.key, map.optional).await;
    }
    if let Some(secret) = &from.secret_key_ref {
        return one_of(inputs, refer(pod, Kind::Secret, &secret.name), &secret.key, secret.optional).await;
    }
    Err(wrong("this node knows fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef".to_owned()))
}

async fn one_of(
    inputs: &Inputs<'_>,
    of: Ref,
    key: &str,
    optional: Option<bool>,
) -> Result<Option<String>, ConfigError> {
    let Some(content) = read(inputs, &of, optional).await? else { return Ok(None) };
    match content.get(key) {
        Some(value) => text(&of, key, value).map(Some),
        None if optional == Some(true) => Ok(None),
        None => Err(ConfigError::MissingKey { of, key: key.to_owned() }),
    }
}

async fn read(inputs: &Inputs<'_>, of: &Ref, optional: Option<bool>) -> Result<Option<Arc<Content>>, ConfigError> {
    match inputs.sources.read(of).await? {
        None if optional != Some(true) => Err(ConfigError::Missing(of.clone())),
        content => Ok(content),
    }
}

fn text(of: &Ref, key: &str, value: &[u8]) -> Result<String, ConfigError> {
    let text = str::from_utf8(value).map(str::to_owned);
    text.map_err(|_| ConfigError::NotText { of: of.clone(), key: key.to_owned() })
}
