//! Content negotiation: the media type, the form of objects, and indentation.

pub(crate) mod header;

#[cfg(test)]
mod tests;

use http::StatusCode;

use self::header::AcceptClause;
use super::{MediaType, query::QueryParameters};
use crate::api::{GroupVersion, StatusError, field, status::StatusDetails};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointRestrictions {
    /// Custom resources, which have no protobuf.
    pub custom: bool,
    pub answer: ResponseKind,
}

/// The kind of an endpoint's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    Object,
    /// A list, on a path that can also be watched.
    List,
    /// A stream of events, which is never in YAML.
    Watch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaTypeOptions {
    pub media: MediaType,
    pub pretty: bool,
    pub form: ObjectForm,
}

/// The form of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectForm {
    Object,
    Table { version: MetaVersion, include: IncludeObjectPolicy },
    PartialObjectMetadata { version: MetaVersion },
    PartialObjectMetadataList { version: MetaVersion },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1beta1,
}

/// The part of each object in the rows of a Table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObjectPolicy {
    None,
    #[default]
    Metadata,
    Object,
}

impl MetaVersion {
    pub fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl MediaTypeOptions {
    /// JSON, the default of all responses.
    pub const JSON: Self = Self { media: MediaType::Json, pretty: false, form: ObjectForm::Object };

    /// Adds the query's parameter about the rows of a Table.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn with_include_object(self, query: &QueryParameters<'_>) -> Result<Self, StatusError> {
        let form = match self.form {
            ObjectForm::Table { version, .. } => {
                ObjectForm::Table { version, include: include_object_parameter(query)? }
            }
            other => other,
        };
        Ok(Self { form, ..self })
    }

    pub fn content_type(&self, watch: bool) -> &'static str {
        match (self.media, watch) {
            (MediaType::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
            (media, _) => media.name(),
        }
    }

    /// Whether the form is possible for this kind: a list form for a list.
    ///
    /// # Errors
    /// A 406 with kube-apiserver's message.
    pub fn check_form(&self, list: bool, gv: &GroupVersion, kind: &str, custom: bool) -> Result<(), StatusError> {
        let (form, is) = match self.form {
            ObjectForm::PartialObjectMetadata { .. } if list => ("PartialObjectMetadata", "a list"),
            ObjectForm::PartialObjectMetadataList { .. } if !list => ("PartialObjectMetadataList", "not a list"),
            _ => return Ok(()),
        };
        let go_type = go_type(&gv.group, kind, list, custom);
        let message = format!("you requested {form}, but the requested object is {is} (*{go_type})");
        Err(StatusError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
    }
}

/// Negotiates the response to a request for objects.
///
/// # Errors
/// A 406 with kube-apiserver's message.
pub fn negotiate(
    accept: Option<&str>,
    user_agent: Option<&str>,
    query: &QueryParameters<'_>,
    endpoint: EndpointRestrictions,
) -> Result<MediaTypeOptions, StatusError> {
    let (media, form, pretty) =
        choose_clause(accept.unwrap_or_default(), |media, clause| accepted_form(media, clause, endpoint))
            .ok_or_else(|| not_acceptable(ResponseKind::Object))?;
    if endpoint.answer == ResponseKind::Watch && media == MediaType::Yaml {
        return Err(not_acceptable(ResponseKind::Watch));
    }
    Ok(MediaTypeOptions { media, pretty: pretty || is_pretty(query, user_agent), form })
}

/// Negotiates a response with a single form, such as a `Status`, if any media type fits.
pub fn negotiate_plain(
    accept: Option<&str>,
    user_agent: Option<&str>,
    query: &QueryParameters<'_>,
) -> Option<MediaTypeOptions> {
    let fits = |clause: &AcceptClause<'_>| !clause.transforms() && clause.param("sv").unwrap_or_default().is_empty();
    let plain = |_, clause: &AcceptClause<'_>| fits(clause).then_some(ObjectForm::Object);
    let (media, form, pretty) = choose_clause(accept.unwrap_or_default(), plain)?;
    Some(MediaTypeOptions { media, pretty: pretty || is_pretty(query, user_agent), form })
}

/// The first media type, by the caller's order and then the server's, that has a form for the response.
fn choose_clause(
    accept: &str,
    form: impl Fn(MediaType, &AcceptClause<'_>) -> Option<ObjectForm>,
) -> Option<(MediaType, ObjectForm, bool)> {
    if accept.is_empty() {
        return Some((MediaType::Json, ObjectForm::Object, false));
    }
    let clauses = header::parse(accept);
    clauses.iter().find_map(|clause| {
        let media = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];
        media.into_iter().filter(|media| clause.includes(*media)).find_map(|media| {
            let stream = clause.param("stream").unwrap_or_default();
            if !stream.is_empty() && (stream != "watch" || media == MediaType::Yaml) {
                return None;
            }
            Some((media, form(media, clause)?, clause.param("pretty") == Some("1")))
        })
    })
}

/// The form of objects that a clause requests, if this media type supports it.
fn accepted_form(media: MediaType, clause: &AcceptClause<'_>, endpoint: EndpointRestrictions) -> Option<ObjectForm> {
    if !matches!(clause.param("sv").unwrap_or_default(), "" | "v1") {
        return None;
    }
    if !clause.transforms() {
        return (!endpoint.custom || media != MediaType::Protobuf).then_some(ObjectForm::Object);
    }
    let version = match (clause.param("g")?, clause.param("v")?) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
        _ => return None,
    };
    match clause.param("as")? {
        "Table" if media != MediaType::Protobuf => {
            Some(ObjectForm::Table { version, include: IncludeObjectPolicy::default() })
        }
        "PartialObjectMetadata" => Some(ObjectForm::PartialObjectMetadata { version }),
        "PartialObjectMetadataList" => Some(ObjectForm::PartialObjectMetadataList { version }),
        _ => None,
    }
}

/// Applies the check of kube-apiserver's router, which precedes every handler of a built-in kind: the router
/// compares names literally, and does not support `application/*`. `more` are further media types of the path.
///
/// # Errors
/// A 406 with kube-apiserver's message.
pub fn check_route_accepts(accept: Option<&str>, answer: ResponseKind, more: &[&str]) -> Result<(), StatusError> {
    let accept = accept.unwrap_or_default();
    let media = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf].map(MediaType::name);
    let streams: &[&str] = match answer {
        ResponseKind::Object => &[],
        ResponseKind::List | ResponseKind::Watch => {
            &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]
        }
    };
    let known: Vec<&str> = more.iter().chain(&media).chain(streams).copied().collect();
    let mut names = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim_matches(' '));
    if accept.is_empty() || names.any(|name| name == "*/*" || known.contains(&name)) {
        return Ok(());
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", known.join(", "));
    Err(StatusError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with(StatusDetails::default()))
}

/// The error if no accepted media type is supported.
pub fn not_acceptable(answer: ResponseKind) -> StatusError {
    let known = match answer {
        ResponseKind::Watch => "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    };
    let message = format!("only the following media types are accepted: {known}");
    StatusError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

fn include_object_parameter(query: &QueryParameters<'_>) -> Result<IncludeObjectPolicy, StatusError> {
    match query.get("includeObject").unwrap_or_default() {
        "None" => Ok(IncludeObjectPolicy::None),
        "" | "Metadata" => Ok(IncludeObjectPolicy::Metadata),
        "Object" => Ok(IncludeObjectPolicy::Object),
        other => {
            let why = "must be 'Metadata', 'Object', 'None', or empty";
            let error = field::FieldError::invalid("includeObject", &other.into(), why);
            Err(StatusError::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}

/// Indented output: `?pretty=true`, or a browser, curl or wget without that parameter.
fn is_pretty(query: &QueryParameters<'_>, user_agent: Option<&str>) -> bool {
    match query.get("pretty").unwrap_or_default() {
        "" => user_agent.is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|by| agent.starts_with(by))),
        pretty => matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// The name of kube-apiserver's Go type for a kind.
fn go_type(group: &str, kind: &str, list: bool, custom: bool) -> String {
    if custom {
        return if list { "unstructured.UnstructuredList" } else { "unstructured.Unstructured" }.to_owned();
    }
    let package = match group {
        "" | "events.k8s.io" => "core",
        other => other.split('.').next().unwrap_or_default(),
    };
    format!("{package}.{kind}")
}
