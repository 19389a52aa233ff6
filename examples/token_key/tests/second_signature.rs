//! A library that many servers use accepts two signatures of one token, and anyone can compute the second from the first.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// The order of the group of P-256.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, //
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// n − s.
fn negated(s: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut digits = Vec::new();
    for (n, s) in ORDER.iter().zip(s).rev() {
        let difference = i16::from(*n) - i16::from(*s) - borrow;
        borrow = i16::from(difference < 0);
        digits.push(difference.rem_euclid(256) as u8);
    }
    digits.reverse();
    digits
}

#[test]
fn both_signatures_of_a_token_have_one_key() {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let public = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap();
    let claims = json!({ "sub": "alice", "exp": 4_000_000_000_u64 });
    let first = encode(&Header::new(Algorithm::ES256), &claims, &EncodingKey::from_ec_der(key.as_ref())).unwrap();

    let (signed, signature) = first.rsplit_once('.').unwrap();
    let signature = BASE64.decode(signature).unwrap();
    let second = [&signature[..32], &negated(&signature[32..])].concat();
    let second = format!("{signed}.{}", BASE64.encode(second));
    assert_ne!(first, second);

    let public = DecodingKey::from_ec_der(public.public_key().as_ref());
    for token in [&first, &second] {
        let found =
            decode::<Value>(token, &public, &Validation::new(Algorithm::ES256)).expect("the library accepts it");
        assert_eq!(found.claims["sub"], "alice");
    }
    assert_eq!(token_key::key(&first), token_key::key(&second));
}
