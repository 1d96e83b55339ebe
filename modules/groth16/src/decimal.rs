//! Decimal numbers, as proving tools print them, to the words of the wire format.

/// Why a text is not a word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Nothing to read.
    #[error("number is empty")]
    Empty,
    /// Something else than 0-9.
    #[error("character {index} is not a decimal digit: {found:?}")]
    NotADigit { index: usize, found: char },
    /// 2^256 or more.
    #[error("number does not fit in 256 bits: {digit_count} digits")]
    TooLarge { digit_count: usize },
}

/// Reads an unsigned decimal number into a 32-byte big-endian word. Whether it is below a modulus is for the parsers.
pub fn word_from_decimal(text: &str) -> Result<[u8; 32], DecimalError> {
    if text.is_empty() {
        return Err(DecimalError::Empty);
    }
    let mut word = [0; 32];
    for (index, found) in text.chars().enumerate() {
        let digit = found
            .to_digit(10)
            .ok_or(DecimalError::NotADigit { index, found })?;
        let mut carry = digit;
        for byte in word.iter_mut().rev() {
            let value = u32::from(*byte) * 10 + carry;
            [_, _, _, *byte] = value.to_be_bytes();
            carry = value >> 8;
        }
        if carry != 0 {
            return Err(DecimalError::TooLarge {
                digit_count: text.len(),
            });
        }
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_largest_word_and_refuses_the_next() {
        let largest =
            "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(word_from_decimal(largest), Ok([0xff; 32]));
        let next = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        assert_eq!(
            word_from_decimal(next),
            Err(DecimalError::TooLarge { digit_count: 78 })
        );
    }

    #[test]
    fn refuses_what_is_not_a_number() {
        assert_eq!(word_from_decimal(""), Err(DecimalError::Empty));
        assert_eq!(
            word_from_decimal("1-2"),
            Err(DecimalError::NotADigit {
                index: 1,
                found: '-'
            })
        );
    }
}
