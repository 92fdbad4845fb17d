//! How to answer: the media type, the form of objects, and whether it is for people's eyes.

pub(crate) mod header;

#[cfg(test)]
mod tests;

use http::StatusCode;

use self::header::Clause;
use super::{Media, query::Query};
use crate::api::{GroupVersion, Status, field, status::Details};

/// What is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Custom resources have no protobuf.
    pub custom: bool,
    /// What it answers with.
    pub answer: Answer,
}

/// What an endpoint answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One object.
    Object,
    /// A list, from a path that can also be watched.
    List,
    /// A stream of events, which is never in YAML.
    Watch,
}

/// How to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The media type.
    pub media: Media,
    /// Indent JSON.
    pub pretty: bool,
    /// The form of objects.
    pub form: Form,
}

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Form {
    /// As they are.
    Object,
    Table {
        version: MetaVersion,
        include: Include,
    },
    PartialObjectMetadata {
        version: MetaVersion,
    },
    PartialObjectMetadataList {
        version: MetaVersion,
    },
}

/// A version of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum MetaVersion {
    V1,
    V1beta1,
}

/// What of each object is in the rows of a Table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl MetaVersion {
    /// As in `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Chosen {
    /// JSON, as everything is answered that nothing else is asked for.
    pub const JSON: Self = Self { media: Media::Json, pretty: false, form: Form::Object };

    /// With what the query says of the rows of a Table.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's words.
    pub fn with_include(self, query: &Query<'_>) -> Result<Self, Status> {
        let form = match self.form {
            Form::Table { version, .. } => Form::Table { version, include: include(query)? },
            other => other,
        };
        Ok(Self { form, ..self })
    }

    /// The `Content-Type` of the answer.
    pub fn content_type(&self, watch: bool) -> &'static str {
        match (self.media, watch) {
            (Media::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
            (media, _) => media.name(),
        }
    }

    /// Whether the form fits what is answered, which is of this kind: a list of a list's kind.
    ///
    /// # Errors
    /// A 406 with kube-apiserver's words.
    pub fn check_form(&self, list: bool, gv: &GroupVersion, kind: &str, custom: bool) -> Result<(), Status> {
        let (form, is) = match self.form {
            Form::PartialObjectMetadata { .. } if list => ("PartialObjectMetadata", "a list"),
            Form::PartialObjectMetadataList { .. } if !list => ("PartialObjectMetadataList", "not a list"),
            _ => return Ok(()),
        };
        let go_type = go_type(&gv.group, kind, list, custom);
        let message = format!("you requested {form}, but the requested object is {is} (*{go_type})");
        Err(Status::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
    }
}

/// Chooses how to answer a request for objects.
///
/// # Errors
/// A 406 with kube-apiserver's words.
pub fn negotiate(
    accept: Option<&str>,
    user_agent: Option<&str>,
    query: &Query<'_>,
    endpoint: Endpoint,
) -> Result<Chosen, Status> {
    let (media, form, pretty) = choose(accept.unwrap_or_default(), |media, clause| form(media, clause, endpoint))
        .ok_or_else(|| not_acceptable(Answer::Object))?;
    if endpoint.answer == Answer::Watch && media == Media::Yaml {
        return Err(not_acceptable(Answer::Watch));
    }
    Ok(Chosen { media, pretty: pretty || is_pretty(query, user_agent), form })
}

/// Chooses how to answer with a Status or anything else that has one form only, if anything fits.
pub fn negotiate_plain(accept: Option<&str>, user_agent: Option<&str>, query: &Query<'_>) -> Option<Chosen> {
    let fits = |clause: &Clause<'_>| !clause.transforms() && clause.param("sv").unwrap_or_default().is_empty();
    let plain = |_, clause: &Clause<'_>| fits(clause).then_some(Form::Object);
    let (media, form, pretty) = choose(accept.unwrap_or_default(), plain)?;
    Some(Chosen { media, pretty: pretty || is_pretty(query, user_agent), form })
}

/// The first media type, by the caller's order and then ours, in which the answer has a form.
fn choose(accept: &str, form: impl Fn(Media, &Clause<'_>) -> Option<Form>) -> Option<(Media, Form, bool)> {
    if accept.is_empty() {
        return Some((Media::Json, Form::Object, false));
    }
    let clauses = header::parse(accept);
    clauses.iter().find_map(|clause| {
        let media = [Media::Json, Media::Yaml, Media::Protobuf];
        media.into_iter().filter(|media| clause.includes(*media)).find_map(|media| {
            let stream = clause.param("stream").unwrap_or_default();
            if !stream.is_empty() && (stream != "watch" || media == Media::Yaml) {
                return None;
            }
            Some((media, form(media, clause)?, clause.param("pretty") == Some("1")))
        })
    })
}

/// The form of objects that a clause asks for, if it can be given in this media type.
fn form(media: Media, clause: &Clause<'_>, endpoint: Endpoint) -> Option<Form> {
    if !matches!(clause.param("sv").unwrap_or_default(), "" | "v1") {
        return None;
    }
    if !clause.transforms() {
        return (!endpoint.custom || media != Media::Protobuf).then_some(Form::Object);
    }
    let version = match (clause.param("g")?, clause.param("v")?) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
        _ => return None,
    };
    match clause.param("as")? {
        "Table" if media != Media::Protobuf => Some(Form::Table { version, include: Include::default() }),
        "PartialObjectMetadata" => Some(Form::PartialObjectMetadata { version }),
        "PartialObjectMetadataList" => Some(Form::PartialObjectMetadataList { version }),
        _ => None,
    }
}

/// Refuses what kube-apiserver's router does not know, before any handler of a built-in kind sees it: the router compares names as
/// they are written, and knows no `application/*`. `more` is what else a path produces.
///
/// # Errors
/// A 406 with kube-apiserver's words.
pub fn route(accept: Option<&str>, answer: Answer, more: &[&str]) -> Result<(), Status> {
    let accept = accept.unwrap_or_default();
    let media = [Media::Json, Media::Yaml, Media::Protobuf].map(Media::name);
    let streams: &[&str] = match answer {
        Answer::Object => &[],
        Answer::List | Answer::Watch => {
            &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]
        }
    };
    let known: Vec<&str> = more.iter().chain(&media).chain(streams).copied().collect();
    let mut names = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim_matches(' '));
    if accept.is_empty() || names.any(|name| name == "*/*" || known.contains(&name)) {
        return Ok(());
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", known.join(", "));
    Err(Status::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with(Details::default()))
}

/// What is said where nothing that the caller accepts can be given.
pub fn not_acceptable(answer: Answer) -> Status {
    let known = match answer {
        Answer::Watch => "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    };
    let message = format!("only the following media types are accepted: {known}");
    Status::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

fn include(query: &Query<'_>) -> Result<Include, Status> {
    match query.get("includeObject").unwrap_or_default() {
        "None" => Ok(Include::None),
        "" | "Metadata" => Ok(Include::Metadata),
        "Object" => Ok(Include::Object),
        other => {
            let why = "must be 'Metadata', 'Object', 'None', or empty";
            let error = field::Error::invalid("includeObject", &other.into(), why);
            Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}

/// For people: `?pretty=true`, or a browser, curl or wget that does not say otherwise.
fn is_pretty(query: &Query<'_>, user_agent: Option<&str>) -> bool {
    match query.get("pretty").unwrap_or_default() {
        "" => user_agent.is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|by| agent.starts_with(by))),
        pretty => matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// The name of kube-apiserver's own type for a kind.
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
