"""Which spellings of one token Python's libraries accept. README.md has the result.

    python3 -m venv venv
    venv/bin/pip install PyJWT==2.10.1 python-jose==3.5.0 Authlib==1.9.10 cryptography
    venv/bin/python examples/token_key/spellings.py
"""

import base64
import warnings

warnings.simplefilter("ignore")

import jwt
from authlib.jose import jwt as authlib
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jose import jwt as jose

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def encode(signature):
    return base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


def main():
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    while True:  # until the signature has both characters that the two alphabets spell differently
        token = jwt.encode({"sub": "alice"}, private, algorithm="ES256")
        signed, text = token.rsplit(".", 1)
        if "-" in text and "_" in text:
            break
    signature = base64.urlsafe_b64decode(text + "==")
    r, s = signature[:32], int.from_bytes(signature[32:], "big")
    spellings = {
        "as it was issued": text,
        "the second signature, (r, n - s)": encode(r + (ORDER - s).to_bytes(32, "big")),
        "unused bits changed": text[:-1] + ALPHABET[ALPHABET.index(text[-1]) ^ 1],
        "padding": text + "==",
        "+ and / for - and _": text.replace("-", "+").replace("_", "/"),
    }
    libraries = {
        "PyJWT": lambda token: jwt.decode(token, public, algorithms=["ES256"]),
        "python-jose": lambda token: jose.decode(token, public.decode(), algorithms=["ES256"]),
        "Authlib": lambda token: authlib.decode(token, public),
    }
    for name, spelling in spellings.items():
        accepted = []
        for library, check in libraries.items():
            try:
                assert check(f"{signed}.{spelling}")["sub"] == "alice"
                accepted.append(library)
            except Exception:
                pass
        print(f"{name}: {', '.join(accepted) or 'none'}")


main()
