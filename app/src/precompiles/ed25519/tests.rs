use super::*;
use ed25519_consensus::SigningKey;

fn signed(seed: u8, message: &[u8]) -> ([u8; 32], [u8; 64]) {
    let key = SigningKey::from([seed; 32]);
    (
        key.verification_key().to_bytes(),
        key.sign(message).to_bytes(),
    )
}

fn hex32(text: &str) -> [u8; 32] {
    alloy_primitives::hex::FromHex::from_hex(text).expect("32 bytes")
}

/// RFC 8032, section 7.1, test 2.
#[test]
fn accepts_the_rfcs_signature_and_no_bit_of_it_changed() {
    let key = hex32("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    let signature: [u8; 64] = alloy_primitives::hex::FromHex::from_hex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    )
    .expect("64 bytes");
    assert!(holds(&key, &signature, &[0x72]));
    for bit in 0..512 {
        let mut changed = signature;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!holds(&key, &changed, &[0x72]), "bit {bit}");
    }
    for bit in 0..256 {
        let mut changed = key;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!holds(&changed, &signature, &[0x72]), "bit {bit}");
    }
    assert!(!holds(&key, &signature, &[0x73]));
    assert!(!holds(&key, &signature, &[]));
}

#[test]
fn refuses_s_plus_the_groups_order() {
    let (key, mut signature) = signed(3, b"message");
    assert!(holds(&key, &signature, b"message"));
    // 2^252 + 27742317777372353535851937790883648493, little-endian.
    let mut order = [0u8; 32];
    order[..16].copy_from_slice(&27742317777372353535851937790883648493u128.to_le_bytes());
    order[31] = 0x10;
    let mut carry = 0u16;
    for (byte, add) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = (sum & 0xff) as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    assert!(!holds(&key, &signature, b"message"));
}

#[test]
fn refuses_keys_and_commitments_of_small_order() {
    // With A and R of small order and s = 0 the equation holds for every message: the library says yes.
    for y in SMALL_ORDER_Y {
        for sign in [0, 0x80] {
            let mut point = y;
            point[31] |= sign;
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&point);
            let library = VerificationKey::try_from(point)
                .expect("a point, in one of its encodings")
                .verify(&Signature::from(signature), b"anything");
            assert!(library.is_ok());
            assert!(!holds(&point, &signature, b"anything"));
            let (honest, _) = signed(5, b"anything");
            assert!(!holds(&honest, &signature, b"anything"));
        }
    }
}

#[test]
fn refuses_y_at_or_above_the_modulus() {
    for low in 0xedu8..=0xff {
        let mut encoding = minus_one();
        encoding[0] = low;
        assert!(!is_strict(&encoding));
        encoding[31] = 0xff;
        assert!(!is_strict(&encoding));
    }
    let mut below = minus_one();
    below[0] = 0xeb;
    assert!(is_strict(&below));
}

#[test]
fn charges_for_the_message_and_reverts_only_on_a_short_input() {
    let message = [9; 65];
    let (key, signature) = signed(7, &message);
    let input = [&key[..], &signature, &message].concat();
    let gas = price(65);
    assert_eq!(gas, BASE_GAS + 3 * MESSAGE_WORD_GAS);
    let context = Context::default();
    assert_eq!(verify(&context, &input, gas), answer(gas, true));
    assert_eq!(verify(&context, &input, gas - 1), Outcome::OutOfGas);
    assert_eq!(
        verify(&context, &[0; 96], 1_000_000),
        answer(BASE_GAS, false)
    );
    for length in [0, 31, 32, 95] {
        assert_eq!(
            verify(&context, &input[..length], 1_000_000),
            revert::<InvalidLength>(1_000_000)
        );
    }
}
