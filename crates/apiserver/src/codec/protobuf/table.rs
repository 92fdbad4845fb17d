//! Which messages there are. `messages.txt` is made by `cargo xtask protobuf`.
//!
//! A line without a blank in front names a message (`[]` behind it: in JSON it is the list in its first field); the lines below are
//! its fields: number, name in JSON, type. Marks before the type: `<` its fields are the message's own in JSON, `*` a pointer, which
//! is absent or has a value, `!` in JSON also when zero, `?` not in JSON when it is an empty message, `[]` a list, `{}` a map.

use std::{collections::HashMap, sync::OnceLock};

static TEXT: &str = include_str!("messages.txt");

/// All messages by their names.
pub(super) struct Table {
    messages: HashMap<&'static str, Message>,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    /// In JSON it is the list in its first field.
    pub(super) list: bool,
    /// By their numbers.
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) label: Label,
    pub(super) inline: bool,
    pub(super) pointer: bool,
    /// In JSON also when zero.
    pub(super) always: bool,
    /// Not in JSON when it is an empty message.
    pub(super) omits_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    One,
    List,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    /// By its name, since messages contain themselves.
    Message(&'static str),
}

impl Table {
    /// The table, read when it is first needed.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Table::parse(TEXT))
    }

    pub(super) fn message(&self, name: &str) -> Option<&Message> {
        self.messages.get(name)
    }

    /// Every message.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    /// The message of a kind. Options and Status are the same in every group.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let package = match group {
            "" => "core",
            other => other.split('.').next()?,
        };
        let own = self.message(&format!("{package}/{version}.{kind}"));
        own.or_else(|| match kind {
            "APIGroup"
            | "APIGroupList"
            | "APIResourceList"
            | "APIVersions"
            | "CreateOptions"
            | "DeleteOptions"
            | "GetOptions"
            | "ListOptions"
            | "PatchOptions"
            | "PartialObjectMetadata"
            | "PartialObjectMetadataList"
            | "Status"
            | "UpdateOptions"
            | "WatchEvent" => self.message(&format!("meta/v1.{kind}")),
            _ => None,
        })
    }

    fn parse(text: &'static str) -> Self {
        let mut messages = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(' ') {
                None => {
                    let (name, list) = line.strip_suffix(" []").map_or((line, false), |name| (name, true));
                    messages.push(Message { name, list, fields: Vec::new() });
                }
                Some(field) => {
                    if let (Some(message), Some(field)) = (messages.last_mut(), Field::parse(field)) {
                        message.fields.push(field);
                    }
                }
            }
        }
        Self { messages: messages.into_iter().map(|message| (message.name, message)).collect() }
    }
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        // Fields are sorted and mostly without gaps.
        let near = usize::try_from(number).ok()?.checked_sub(1)?;
        match self.fields.get(near) {
            Some(field) if field.number == number => Some(field),
            _ => {
                let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
                self.fields.get(at)
            }
        }
    }
}

impl Field {
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split(' ');
        let (number, name, kind) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
        let plain = kind.trim_start_matches(['<', '*', '!', '?', '[', ']', '{', '}']);
        let marks = kind.strip_suffix(plain)?;
        Some(Self {
            number,
            name,
            kind: match plain {
                "string" => Kind::String,
                "bool" => Kind::Bool,
                "int32" => Kind::Int32,
                "int64" => Kind::Int64,
                "double" => Kind::Double,
                "bytes" => Kind::Bytes,
                message => Kind::Message(message),
            },
            label: match marks {
                marks if marks.ends_with("[]") => Label::List,
                marks if marks.ends_with("{}") => Label::Map,
                _ => Label::One,
            },
            inline: marks.contains('<'),
            pointer: marks.contains('*'),
            always: marks.contains('!'),
            omits_zero: marks.contains('?'),
        })
    }
}
