//! As much protobuf reading as answers need.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// A string, bytes or a message.
    Bytes(&'a [u8]),
    /// Eight or four fixed bytes.
    Fixed(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number, if it is one.
    pub(crate) fn number(self) -> Option<u64> {
        if let Value::Number(number) = self { Some(number) } else { None }
    }

    /// The bytes, if it has any.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Walks over a message's fields. It ends early at anything malformed.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The first field with this number.
    pub(crate) fn find_field(mut self, number: u64) -> Option<Value<'a>> {
        self.find(|(field, _)| *field == number).map(|(_, value)| value)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Fixed(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}
