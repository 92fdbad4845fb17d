//! A minimal protobuf reader for responses.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    Number(u64),
    /// A string, bytes or a message.
    Bytes(&'a [u8]),
    /// Eight or four fixed bytes.
    Fixed(&'a [u8]),
}

impl<'a> WireValue<'a> {
    /// The value of a varint.
    pub(crate) fn number(self) -> Option<u64> {
        if let WireValue::Number(number) = self { Some(number) } else { None }
    }

    /// The value of a length-delimited field.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        if let WireValue::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Iterates over the fields of a message. It ends early at malformed input.
#[derive(Clone, Debug)]
pub(crate) struct WireFieldIter<'a>(pub &'a [u8]);

impl<'a> WireFieldIter<'a> {
    pub(crate) fn find_field(mut self, number: u64) -> Option<WireValue<'a>> {
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

impl<'a> Iterator for WireFieldIter<'a> {
    type Item = (u64, WireValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => WireValue::Number(self.varint()?),
            1 => WireValue::Fixed(self.take(8)?),
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => WireValue::Fixed(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}
