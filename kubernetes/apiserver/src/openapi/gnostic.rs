//! Swagger 2.0 as protobuf: the messages of gnostic's `openapi.v2`, encoded by hand, since a document uses few
//! of their fields.

use prost::encoding::{self, WireType};
use serde_json::{Map, Value};

#[derive(Debug, Default)]
struct GnosticMessage(Vec<u8>);

/// `openapi.v2.Document`
#[derive(Debug)]
pub(super) struct GnosticDocument {
    head: GnosticMessage,
    paths: GnosticMessage,
    definitions: GnosticMessage,
}

impl GnosticDocument {
    pub(super) fn new(title: &str, version: &str) -> Self {
        let mut head = GnosticMessage::default();
        head.text(1, "2.0");
        head.message(2, |info| {
            info.text(1, title);
            info.text(2, version);
        });
        Self { head, paths: GnosticMessage::default(), definitions: GnosticMessage::default() }
    }

    /// Adds the item of a path, of which only the patch is encoded.
    pub(super) fn path(&mut self, name: &str, item: &Value) {
        let patch = item.get("patch").and_then(Value::as_object);
        // `NamedPathItem`, `PathItem`
        self.paths.message(2, |named| {
            named.text(1, name);
            named.message(2, |item| item.message(8, |operation| operation.operation(patch)));
        });
    }

    pub(super) fn define(&mut self, name: &str, schema: &Value) {
        self.definitions.named_schema(1, name, schema);
    }

    pub(super) fn end(self) -> Vec<u8> {
        let Self { mut head, paths, definitions } = self;
        head.bytes(8, &paths.0);
        head.bytes(9, &definitions.0);
        head.0
    }
}

impl GnosticMessage {
    fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encoding::encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, tag: u32, text: &str) {
        self.bytes(tag, text.as_bytes());
    }

    fn message(&mut self, tag: u32, write: impl FnOnce(&mut GnosticMessage)) {
        let mut inner = GnosticMessage::default();
        write(&mut inner);
        self.bytes(tag, &inner.0);
    }

    fn number(&mut self, tag: u32, number: u64) {
        encoding::encode_key(tag, WireType::Varint, &mut self.0);
        encoding::encode_varint(number, &mut self.0);
    }

    fn double(&mut self, tag: u32, number: f64) {
        encoding::double::encode(tag, &number, &mut self.0);
    }

    /// `Any`, which contains YAML, and JSON is YAML.
    fn any(&mut self, tag: u32, value: &Value) {
        self.message(tag, |any| any.text(2, &value.to_string()));
    }

    fn extension(&mut self, tag: u32, key: &str, value: &Value) {
        self.message(tag, |extension| {
            extension.text(1, key);
            extension.any(2, value);
        });
    }

    /// `Operation`, without descriptions.
    fn operation(&mut self, operation: Option<&Map<String, Value>>) {
        for (key, value) in operation.into_iter().flatten() {
            let items = || value.as_array().into_iter().flatten();
            match &**key {
                "consumes" => items().filter_map(Value::as_str).for_each(|media| self.text(7, media)),
                "parameters" => items().for_each(|parameter| self.parameter(parameter)),
                _ if key.starts_with("x-") => self.extension(13, key, value),
                _ => {}
            }
        }
    }

    /// `ParametersItem`, `Parameter`, `NonBodyParameter` and the message of its location, whose fields have the
    /// same numbers but for one.
    fn parameter(&mut self, parameter: &Value) {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let (place, of) = if text("in") == "path" { (4, 5) } else { (3, 6) };
        self.message(8, |item| {
            item.message(1, |parameter| {
                parameter.message(2, |other| {
                    other.message(place, |fields| {
                        fields.number(1, u64::from(text("in") == "path"));
                        fields.text(2, text("in"));
                        fields.text(4, text("name"));
                        fields.text(of, text("type"));
                    });
                });
            });
        });
    }

    fn named_schema(&mut self, tag: u32, name: &str, schema: &Value) {
        self.message(tag, |named| {
            named.text(1, name);
            named.message(2, |inner| inner.schema(schema));
        });
    }

    fn schema(&mut self, schema: &Value) {
        for (key, value) in schema.as_object().into_iter().flatten() {
            self.keyword(key, value);
        }
    }

    fn keyword(&mut self, key: &str, value: &Value) {
        let items = || value.as_array().into_iter().flatten();
        match key {
            "required" => items().filter_map(Value::as_str).for_each(|word| self.text(19, word)),
            "enum" => items().for_each(|value| self.any(20, value)),
            // `AdditionalPropertiesItem`
            "additionalProperties" => self.message(21, |item| item.message(1, |inner| inner.schema(value))),
            // `TypeItem`
            "type" => self.message(22, |item| item.text(1, value.as_str().unwrap_or_default())),
            // `ItemsItem`
            "items" => self.message(23, |item| item.message(1, |inner| inner.schema(value))),
            // `Properties`
            "properties" => self.message(25, |properties| properties.named_schemas(value.as_object())),
            _ if key.starts_with("x-") => self.extension(31, key, value),
            _ => self.scalar_keyword(key, value),
        }
    }

    fn named_schemas(&mut self, schemas: Option<&Map<String, Value>>) {
        for (name, schema) in schemas.into_iter().flatten() {
            self.named_schema(1, name, schema);
        }
    }

    fn scalar_keyword(&mut self, key: &str, value: &Value) {
        const TEXTS: [(&str, u32); 4] = [("$ref", 1), ("format", 2), ("description", 4), ("pattern", 13)];
        const DOUBLES: [(&str, u32); 3] = [("multipleOf", 6), ("maximum", 7), ("minimum", 9)];
        const NUMBERS: [(&str, u32); 9] = [
            ("exclusiveMaximum", 8),
            ("exclusiveMinimum", 10),
            ("maxLength", 11),
            ("minLength", 12),
            ("maxItems", 14),
            ("minItems", 15),
            ("uniqueItems", 16),
            ("maxProperties", 17),
            ("minProperties", 18),
        ];
        let tag = |table: &[(&str, u32)]| table.iter().find(|(known, _)| *known == key).map(|(_, tag)| *tag);
        if let (Some(tag), Some(text)) = (tag(&TEXTS), value.as_str()) {
            self.text(tag, text);
        } else if let (Some(tag), Some(number)) = (tag(&DOUBLES), value.as_f64()) {
            self.double(tag, number);
        } else if let (Some(tag), Some(number)) = (tag(&NUMBERS), value.as_u64().or(value.as_bool().map(u64::from))) {
            self.number(tag, number);
        }
    }
}
