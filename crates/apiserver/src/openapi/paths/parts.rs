//! The paths of subresources.

use serde_json::Value;

use super::{
    super::{
        names::{capitalized, part_type},
        operation::{Common, Content, Operation, path_item},
        parameters::{self, LOG, PRETTY, REST, WRITE},
    },
    OK, Paths,
};
use crate::registry::Subresource;

impl Paths<'_> {
    /// A subresource.
    pub(super) fn part(&self, sub: &Subresource, path: &str, write: &mut dyn FnMut(String, Value)) {
        let common = Common { tag: self.tag, gv: sub.gv.as_ref().unwrap_or(&self.resource.gv), kind: &sub.kind };
        if sub.kind.ends_with("Options") {
            write(path.to_owned(), path_item(common, &self.connect(sub, false)));
            if &*sub.name == "proxy" {
                write(format!("{path}/{{path}}"), path_item(common, &self.connect(sub, true)));
            }
            return;
        }
        let of = part_type(self.resource, sub);
        let name = capitalized(&sub.name);
        let operations: Vec<Operation> = sub
            .verbs
            .iter()
            .filter_map(|verb| match *verb {
                "get" if &*sub.name == "log" => Some(self.log()),
                "get" => Some(self.read(self.id("read", "", &name), of.clone())),
                "update" => Some(self.replace(self.id("replace", "", &name), of.clone())),
                "patch" => Some(self.patch(self.id("patch", "", &name), of.clone())),
                "create" => {
                    Some(self.create(self.id("create", "", &name), of.clone(), self.parameters(true, &[&WRITE])))
                }
                _ => None,
            })
            .collect();
        write(path.to_owned(), path_item(common, &operations));
    }

    fn log(&self) -> Operation {
        let mut answer = self.content(None);
        answer.media.push("text/plain");
        Operation {
            description: "read log of the specified Pod".to_owned(),
            parameters: self.parameters(true, &[&LOG]),
            answer,
            ..self.read(self.id("read", "", "Log"), String::new())
        }
    }

    /// A connection to what an object stands for. A proxy takes every method.
    fn connect(&self, sub: &Subresource, with_path: bool) -> Vec<Operation> {
        const ALL: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
        let methods = if &*sub.name == "proxy" { &ALL[..] } else { &["get", "post"] };
        let more = parameters::of_connection(&sub.kind);
        let mut parameters = self.parameters(true, &[&more]);
        parameters.retain(|parameter| *parameter != PRETTY);
        parameters.extend(with_path.then_some(REST));
        let suffix = format!("{}{}", capitalized(&sub.name), if with_path { "WithPath" } else { "" });
        let operation = |method: &&'static str| Operation {
            method,
            action: "connect",
            id: self.id("connect", &capitalized(method), &suffix),
            description: format!(
                "connect {} requests to {} of {}",
                method.to_uppercase(),
                sub.name,
                self.resource.kind
            ),
            parameters: parameters.clone(),
            request: None,
            codes: OK,
            answer: Content { media: vec!["*/*"], of: None },
        };
        methods.iter().map(operation).collect()
    }
}
