//! The paths of subresources.

use serde_json::Value;

use super::{
    super::{
        names::{capitalized, part_type},
        operation::{ApiOperation, MediaContent, PathItemContext, path_item},
        parameters::{self, LOG, PRETTY, REST, WRITE},
    },
    OK, PathWriter,
};
use crate::registry::Subresource;

impl PathWriter<'_> {
    pub(super) fn write_subresource(&self, sub: &Subresource, path: &str, write: &mut dyn FnMut(String, Value)) {
        let common =
            PathItemContext { tag: self.tag, gv: sub.gv.as_ref().unwrap_or(&self.resource.gv), kind: &sub.kind };
        if sub.kind.ends_with("Options") {
            write(path.to_owned(), path_item(common, &self.connect(sub, false)));
            if &*sub.name == "proxy" {
                write(format!("{path}/{{path}}"), path_item(common, &self.connect(sub, true)));
            }
            return;
        }
        let of = part_type(self.resource, sub);
        let name = capitalized(&sub.name);
        let operations: Vec<ApiOperation> = sub
            .verbs
            .iter()
            .filter_map(|verb| match *verb {
                "get" if &*sub.name == "log" => Some(self.log()),
                "get" => Some(self.read(self.operation_id("read", "", &name), of.clone())),
                "update" => Some(self.replace(self.operation_id("replace", "", &name), of.clone())),
                "patch" => Some(self.patch(self.operation_id("patch", "", &name), of.clone())),
                "create" => Some(self.create(
                    self.operation_id("create", "", &name),
                    of.clone(),
                    self.parameters(true, &[&WRITE]),
                )),
                _ => None,
            })
            .collect();
        write(path.to_owned(), path_item(common, &operations));
    }

    fn log(&self) -> ApiOperation {
        let mut answer = self.content(None);
        answer.media.push("text/plain");
        ApiOperation {
            description: "read log of the specified Pod".to_owned(),
            parameters: self.parameters(true, &[&LOG]),
            answer,
            ..self.read(self.operation_id("read", "", "Log"), String::new())
        }
    }

    /// A connection to the target of an object. A proxy accepts every method.
    fn connect(&self, sub: &Subresource, with_path: bool) -> Vec<ApiOperation> {
        const ALL: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
        let methods = if &*sub.name == "proxy" { &ALL[..] } else { &["get", "post"] };
        let more = parameters::connect_parameters(&sub.kind);
        let mut parameters = self.parameters(true, &[&more]);
        parameters.retain(|parameter| *parameter != PRETTY);
        parameters.extend(with_path.then_some(REST));
        let suffix = format!("{}{}", capitalized(&sub.name), if with_path { "WithPath" } else { "" });
        let operation = |method: &&'static str| ApiOperation {
            method,
            action: "connect",
            id: self.operation_id("connect", &capitalized(method), &suffix),
            description: format!(
                "connect {} requests to {} of {}",
                method.to_uppercase(),
                sub.name,
                self.resource.kind
            ),
            parameters: parameters.clone(),
            request: None,
            codes: OK,
            answer: MediaContent { media: vec!["*/*"], of: None },
        };
        methods.iter().map(operation).collect()
    }
}
